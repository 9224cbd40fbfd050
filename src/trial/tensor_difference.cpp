#include "src/trial/tensor_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/trial/infinity.h"

namespace attn_opt {
namespace {

using P = onnx::TensorProto;

/// Bits of the mantissa that are stored, and the exponent of the smallest normal number.
struct Precision {
  int bits = 0, least_exponent = 0;
};

Precision precision_of(DataType type) {
  switch (type) {
    case P::FLOAT16: return {10, -14};
    case P::BFLOAT16: return {7, -126};
    case P::FLOAT: return {23, -126};
    default: return {52, -1022};
  }
}

/// Unit in the last place of VALUE.
double last_place(double value, const Precision& precision) {
  const int exponent = value == 0 ? precision.least_exponent : std::max(std::ilogb(value), precision.least_exponent);
  return std::ldexp(1.0, exponent - precision.bits);
}

class Comparison {
 public:
  Comparison(const Tolerance& tolerance, DataType type)
      : tolerance_(tolerance), precision_(precision_of(type)), is_floating_(is_floating(type)) {}

  void add(double expected, double actual) {
    const int64_t index = count_++;
    result_.nans_expected += std::isnan(expected);
    result_.nans_actual += std::isnan(actual);
    if (std::isnan(expected) || std::isnan(actual)) {
      if (std::isnan(expected) == std::isnan(actual)) return;
      ++result_.nans_elsewhere;
      return beyond(index, kInfinity);
    }
    result_.infinities_expected += std::isinf(expected);
    if (expected == actual) return;
    result_.infinities_elsewhere += std::isinf(expected) || std::isinf(actual);
    const bool finite = std::isfinite(expected) && std::isfinite(actual);
    const double apart = finite ? std::abs(actual - expected) : kInfinity;
    if (apart > result_.absolute) {
      result_.absolute = apart;
      largest_ = index;
    }
    if (expected != 0) result_.relative = std::max(result_.relative, finite ? apart / std::abs(expected) : kInfinity);
    if (is_floating_) {
      result_.ulp = std::max(result_.ulp, finite ? apart / last_place(expected, precision_) : kInfinity);
    }
    const double allowed = tolerance_.absolute + tolerance_.relative * std::abs(expected);
    if (!finite || !(apart <= allowed)) beyond(index, finite ? apart - allowed : kInfinity);
  }

  TensorDifference result(const Dims& dims) const {
    TensorDifference result = result_;
    const int64_t worst = worst_ >= 0 ? worst_ : largest_;
    if (worst >= 0) result.worst = index_of(worst, dims);
    return result;
  }

 private:
  void beyond(int64_t index, double by) {
    ++result_.beyond;
    if (by <= furthest_) return;
    furthest_ = by;
    worst_ = index;
  }

  Tolerance tolerance_;
  Precision precision_;
  bool is_floating_;
  TensorDifference result_;
  int64_t count_ = 0, worst_ = -1, largest_ = -1;
  double furthest_ = -1;
};

TensorDifference compare_strings(const Tensor& expected, const Tensor& actual) {
  TensorDifference result;
  const auto wanted = expected.data<std::string>(), found = actual.data<std::string>();
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == found[i]) continue;
    if (result.beyond++ == 0) result.worst = index_of(static_cast<int64_t>(i), expected.dims());
  }
  return result;
}

TensorDifference incomparable(std::string why) {
  TensorDifference result;
  result.incomparable = std::move(why);
  return result;
}

TensorDifference compare_sequences(const Tensor& expected, const Tensor& actual, const Tolerance& tolerance) {
  const auto &wanted = expected.elements(), &found = actual.elements();
  if (wanted.size() != found.size()) {
    return incomparable(fmt::format("{} elements instead of {}", found.size(), wanted.size()));
  }
  TensorDifference all;
  for (size_t i = 0; i < wanted.size(); ++i) {
    TensorDifference one = difference(wanted[i], found[i], tolerance);
    if (!one.incomparable.empty()) return one;
    one.worst.insert(one.worst.begin(), static_cast<int64_t>(i));
    all = worse(all, one);
  }
  return all;
}

/// "a sequence", "an empty optional", "float32".
std::string kind_of(const Tensor& value) {
  if (value.is_sequence()) return "a sequence";
  return value.is_empty_optional() ? "an empty optional" : type_name(value.type());
}

}  // namespace

Dims index_of(int64_t flat, const Dims& dims) {
  Dims index(dims.size());
  for (size_t axis = dims.size(); axis-- > 0; flat /= dims[axis]) index[axis] = flat % dims[axis];
  return index;
}

TensorDifference worse(const TensorDifference& one, const TensorDifference& other) {
  if (one.agrees() != other.agrees()) return one.agrees() ? other : one;
  return one.absolute > other.absolute ? one : other;
}

DataType element_type(const Tensor& value) {
  if (!value.is_sequence()) return value.type();
  return value.elements().empty() ? P::UNDEFINED : element_type(value.elements().front());
}

Tolerance model_tolerance(DataType type) {
  switch (type) {
    case P::DOUBLE: return {1e-7, 1e-9};
    case P::FLOAT: return {1e-3, 1e-5};
    case P::FLOAT16: return {1e-2, 1e-2};
    case P::BFLOAT16: return {5e-2, 5e-2};
    default: return {};
  }
}

TensorDifference difference(const Tensor& expected, const Tensor& actual, const Tolerance& tolerance) {
  if (kind_of(expected) != kind_of(actual)) {
    return incomparable("type " + kind_of(actual) + " instead of " + kind_of(expected));
  }
  if (expected.is_sequence()) return compare_sequences(expected, actual, tolerance);
  if (expected.is_empty_optional()) return {};
  if (expected.dims() != actual.dims()) {
    return incomparable("dims " + to_string(actual.dims()) + " instead of " + to_string(expected.dims()));
  }
  if (expected.type() == onnx::TensorProto::STRING) return compare_strings(expected, actual);
  const bool exact = !is_floating(expected.type());
  if (exact && std::ranges::equal(expected.bytes(), actual.bytes())) return {};
  const auto wanted = expected.cast(onnx::TensorProto::DOUBLE), found = actual.cast(onnx::TensorProto::DOUBLE);
  if (!wanted || !found) return incomparable("type " + type_name(expected.type()) + " cannot be compared");
  Comparison comparison(tolerance, expected.type());
  const auto wanted_data = wanted->data<double>(), found_data = found->data<double>();
  for (size_t i = 0; i < wanted_data.size(); ++i) comparison.add(wanted_data[i], found_data[i]);
  TensorDifference result = comparison.result(expected.dims());
  // 64-bit integers that differ in bits that a double does not hold.
  if (exact && result.absolute == 0) result.beyond = 1;
  return result;
}

std::string to_string(const Dims& dims) { return fmt::format("({})", fmt::join(dims, ", ")); }

std::string to_string(const TensorDifference& difference) {
  if (!difference.incomparable.empty()) return difference.incomparable;
  // Units in the last place of numbers near 0 are many and mean nothing where the tolerance holds.
  const std::string ulp = difference.agrees() ? "" : fmt::format(", {:.3g} ulp", difference.ulp);
  std::string text =
      fmt::format("largest difference {:.3g} (relative {:.3g}{})", difference.absolute, difference.relative, ulp);
  if (difference.absolute > 0 && difference.beyond == 0) text += " at " + to_string(difference.worst);
  if (difference.nans_elsewhere > 0) text += fmt::format(", {} NaN on one side only", difference.nans_elsewhere);
  if (difference.infinities_elsewhere > 0)
    text += fmt::format(", {} infinite on one side only", difference.infinities_elsewhere);
  if (difference.beyond > 0) {
    text += fmt::format(", {} beyond the tolerance, the furthest at {}", difference.beyond, to_string(difference.worst));
  }
  return text;
}

}  // namespace attn_opt
