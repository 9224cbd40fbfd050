#include "src/emit/mask_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "attn_opt/internal/mask_contents.h"

namespace attn_opt {
namespace {

std::optional<double> least_of_constant(const Value& value, Facts& facts) {
  double least = 0;
  auto look_at = [&](double element) {
    if (std::isfinite(element)) least = std::min(least, element);
  };
  if (const auto number = facts.uniform(value)) {
    look_at(*number);
    return least;
  }
  const Tensor* constant = facts.constant(value);
  if (!constant) return std::nullopt;
  const auto wide = constant->cast(onnx::TensorProto::DOUBLE);
  if (!wide) return std::nullopt;
  for (double element : wide->data<double>()) look_at(element);
  return least;
}

double least_of_product(double least, double factor, DataType type) {
  if (factor == 1) return least;
  const double product = least * factor;
  return factor > 0 && product > next_above_lowest(type) ? product : lowest_finite(type);
}

/// At most 0, and no number that CONTENTS hold beside extremes, times FACTOR, lies below it, but for -inf that stands alone.
double least_followed(const MaskContents& contents, double factor) {
  double least = 0;
  for (const double end : {factor * contents.least, factor * contents.greatest})
    if (std::isfinite(end) || !contents.holds_ends_alone) least = std::min(least, end);
  return least;
}

}  // namespace

double next_above_lowest(DataType type) {
  switch (type) {
    case onnx::TensorProto::FLOAT16: return -65472.0;
    case onnx::TensorProto::BFLOAT16: return -0x1.FCp127;
    case onnx::TensorProto::DOUBLE: return std::nextafter(std::numeric_limits<double>::lowest(), 0.0);
    default: return std::nextafter(std::numeric_limits<float>::lowest(), 0.0f);
  }
}

double least_in(Value& value, double factor, DataType type, Facts& facts) {
  const auto least = least_of_constant(value, facts);
  if (least) return least_of_product(std::max(*least, lowest_finite(type)), factor, type);
  // What Cast makes of a wider number is not followed.
  const MaskContents contents = mask_contents(value, facts);
  const bool is_followed = facts.type(value) == type && !contents.may_hold_lowest;
  const double end = least_followed(contents, factor);
  if (is_followed && end > next_above_lowest(type)) return end;
  return least_of_product(is_followed ? next_above_lowest(type) : lowest_finite(type), factor, type);
}

double least_of_sum(double one, double other, DataType type) {
  // Two numbers above the lowest can add up, or round, to it.
  if (one < 0 && other < 0 && one + other <= next_above_lowest(type)) return lowest_finite(type);
  return one + other;
}

}  // namespace attn_opt
