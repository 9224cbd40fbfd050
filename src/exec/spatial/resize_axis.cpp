#include "src/exec/spatial/resize_axis.h"

#include <algorithm>
#include <cmath>

#include "src/exec/spatial/sampling.h"

namespace attn_opt {
namespace {

/// The element before a position, behind it where the axis shrinks; only ONNX's test data of opset 10 say so.
constexpr const char* kNearestBeforeOpset11 = "before opset 11";

bool is_one_of(const std::string& text, std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&](const char* name) { return text == name; });
}

bool extrapolates(const ResizeMode& mode, const ResizeAxis& axis, double position) {
  return mode.coordinates == "tf_crop_and_resize" && (position < 0 || position > static_cast<double>(axis.in - 1));
}

double weight(const ResizeMode& mode, double distance) {
  if (mode.interpolation == "cubic") return cubic_weight(distance, mode.cubic_coefficient);
  return std::max(0.0, 1 - std::abs(distance));
}

}  // namespace

Expected<ResizeMode> read_resize_mode(const KernelContext& context) {
  const bool simple = context.version < 11;
  ResizeMode mode;
  mode.interpolation = context.attribute_string("mode", "nearest");
  mode.coordinates = context.attribute_string("coordinate_transformation_mode", simple ? "asymmetric" : "half_pixel");
  mode.nearest = context.attribute_string("nearest_mode", simple ? kNearestBeforeOpset11 : "round_prefer_floor");
  mode.cubic_coefficient = context.attribute_float("cubic_coeff_a", -0.75f);
  mode.exclude_outside = context.attribute_int("exclude_outside", 0) != 0;
  mode.antialias = context.attribute_int("antialias", 0) != 0;
  mode.extrapolation_value = context.attribute_float("extrapolation_value", 0);
  if (mode.interpolation == "bilinear") mode.interpolation = "linear";
  if (!is_one_of(mode.interpolation, {"nearest", "linear", "cubic"})) {
    return context.invalid("mode is " + mode.interpolation);
  }
  if (!simple && !is_one_of(mode.nearest, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})) {
    return context.invalid("nearest_mode is " + mode.nearest);
  }
  if (!is_one_of(mode.coordinates, {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                                    "tf_crop_and_resize", "tf_half_pixel_for_nn"})) {
    return context.invalid("coordinate_transformation_mode is " + mode.coordinates);
  }
  return mode;
}

double source_position(const ResizeMode& mode, const ResizeAxis& axis, int64_t output) {
  const double x = static_cast<double>(output);
  const double in = static_cast<double>(axis.in);
  const double out = axis.scale * in;
  const double half_pixel = (x + 0.5) / axis.scale - 0.5;
  if (mode.coordinates == "align_corners") return out == 1 ? 0 : x * (in - 1) / (out - 1);
  if (mode.coordinates == "asymmetric") return x / axis.scale;
  if (mode.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  if (mode.coordinates == "pytorch_half_pixel") return out == 1 ? -0.5 : half_pixel;
  if (mode.coordinates == "half_pixel_symmetric") {
    return in / 2 * (1 - static_cast<double>(axis.out) / out) + half_pixel;
  }
  if (mode.coordinates == "tf_crop_and_resize") {
    const double extent = (axis.roi_end - axis.roi_start) * (in - 1);
    return axis.roi_start * (in - 1) + (out == 1 ? extent / 2 : x * extent / (out - 1));
  }
  return half_pixel;
}

int64_t nearest_element(const ResizeMode& mode, const ResizeAxis& axis, int64_t output) {
  const double position = source_position(mode, axis, output);
  if (extrapolates(mode, axis, position)) return -1;
  double chosen = std::ceil(position - 0.5);
  if (mode.nearest == "round_prefer_ceil") chosen = std::floor(position + 0.5);
  if (mode.nearest == kNearestBeforeOpset11) {
    chosen = axis.scale < 1 ? std::ceil(position) : std::floor(position);
  }
  if (mode.nearest == "floor") chosen = std::floor(position);
  if (mode.nearest == "ceil") chosen = std::ceil(position);
  return static_cast<int64_t>(std::clamp(chosen, 0.0, static_cast<double>(axis.in - 1)));
}

Taps taps_at(const ResizeMode& mode, const ResizeAxis& axis, int64_t output) {
  const double position = source_position(mode, axis, output);
  if (extrapolates(mode, axis, position)) return {};
  const double support = mode.interpolation == "cubic" ? 2 : 1;
  const double shrink = mode.antialias ? std::min(axis.scale, 1.0) : 1.0;
  const double lowest = -static_cast<double>(axis.in) - 4 * support / shrink;  // all of them are the first element
  const double centre = std::clamp(position, lowest, static_cast<double>(axis.in) - lowest);
  Taps taps;
  taps.first = static_cast<int64_t>(std::floor(centre - support / shrink)) + 1;
  const int64_t last = static_cast<int64_t>(std::ceil(centre + support / shrink)) - 1;
  double sum = 0;
  for (int64_t i = taps.first; i <= last; ++i) {
    const bool outside = i < 0 || i >= axis.in;
    const double w = mode.exclude_outside && outside ? 0 : weight(mode, (static_cast<double>(i) - centre) * shrink);
    taps.weights.push_back(w);
    sum += w;
  }
  if (sum == 0) sum = 1;
  if (mode.exclude_outside || mode.antialias) {
    for (double& w : taps.weights) w /= sum;
  }
  return taps;
}

}  // namespace attn_opt
