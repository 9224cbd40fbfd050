#include "src/trial/tensor_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace attn_opt {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Comparison {
 public:
  explicit Comparison(const Tolerance& tolerance) : tolerance_(tolerance) {}

  void add(double expected, double actual) {
    const int64_t index = count_++;
    result_.nans_expected += std::isnan(expected);
    result_.nans_actual += std::isnan(actual);
    if (std::isnan(expected) || std::isnan(actual)) {
      if (std::isnan(expected) == std::isnan(actual)) return;
      ++result_.nans_elsewhere;
      return beyond(index, kInfinity);
    }
    if (expected == actual) return;
    const bool finite = std::isfinite(expected) && std::isfinite(actual);
    const double apart = finite ? std::abs(actual - expected) : kInfinity;
    result_.absolute = std::max(result_.absolute, apart);
    if (expected != 0)
      result_.relative = std::max(result_.relative, finite ? apart / std::abs(expected) : kInfinity);
    const double allowed = tolerance_.absolute + tolerance_.relative * std::abs(expected);
    if (!finite || !(apart <= allowed)) beyond(index, finite ? apart - allowed : kInfinity);
  }

  TensorDifference result() const { return result_; }

 private:
  void beyond(int64_t index, double by) {
    ++result_.beyond;
    if (by <= furthest_) return;
    furthest_ = by;
    result_.worst = index;
  }

  Tolerance tolerance_;
  TensorDifference result_;
  int64_t count_ = 0;
  double furthest_ = -1;
};

TensorDifference compare_strings(const Tensor& expected, const Tensor& actual) {
  TensorDifference result;
  const auto wanted = expected.data<std::string>(), found = actual.data<std::string>();
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == found[i]) continue;
    if (result.beyond++ == 0) result.worst = static_cast<int64_t>(i);
  }
  return result;
}

TensorDifference incomparable(std::string why) {
  TensorDifference result;
  result.incomparable = std::move(why);
  return result;
}

}  // namespace

Tolerance model_tolerance(DataType type) {
  using P = onnx::TensorProto;
  switch (type) {
    case P::DOUBLE: return {1e-7, 1e-9};
    case P::FLOAT: return {1e-3, 1e-5};
    case P::FLOAT16: return {1e-2, 1e-2};
    case P::BFLOAT16: return {5e-2, 5e-2};
    default: return {};
  }
}

TensorDifference difference(const Tensor& expected, const Tensor& actual, const Tolerance& tolerance) {
  if (expected.type() != actual.type()) {
    return incomparable("type " + type_name(actual.type()) + " instead of " + type_name(expected.type()));
  }
  if (expected.dims() != actual.dims()) {
    return incomparable("dims " + to_string(actual.dims()) + " instead of " + to_string(expected.dims()));
  }
  if (expected.type() == onnx::TensorProto::STRING) return compare_strings(expected, actual);
  const bool exact = !is_floating(expected.type());
  if (exact && std::ranges::equal(expected.bytes(), actual.bytes())) return {};
  const auto wanted = expected.cast(onnx::TensorProto::DOUBLE),
             found = actual.cast(onnx::TensorProto::DOUBLE);
  if (!wanted || !found) return incomparable("type " + type_name(expected.type()) + " cannot be compared");
  Comparison comparison(tolerance);
  const auto wanted_data = wanted->data<double>(), found_data = found->data<double>();
  for (size_t i = 0; i < wanted_data.size(); ++i) comparison.add(wanted_data[i], found_data[i]);
  TensorDifference result = comparison.result();
  // 64-bit integers that differ in bits that a double does not hold.
  if (exact && result.absolute == 0) result.beyond = 1;
  return result;
}

std::string to_string(const Dims& dims) { return fmt::format("({})", fmt::join(dims, ", ")); }

std::string to_string(const TensorDifference& difference) {
  if (!difference.incomparable.empty()) return difference.incomparable;
  std::string text =
      fmt::format("largest difference {:.3g} (relative {:.3g})", difference.absolute, difference.relative);
  if (difference.nans_elsewhere > 0)
    text += fmt::format(", {} NaN on one side only", difference.nans_elsewhere);
  if (difference.beyond > 0) {
    text += fmt::format(", {} beyond the tolerance, the furthest at {}", difference.beyond, difference.worst);
  }
  return text;
}

}  // namespace attn_opt
