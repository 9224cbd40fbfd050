#include <algorithm>

#include "src/opset/step_rules.h"

namespace attn_opt {
namespace {

using Obstacle = std::optional<std::string>;

Obstacle raise_upsample(Draft& draft, const RaiseSite&) {
  draft.set_op("Resize");
  return {};
}

bool enlarges(Draft& draft, const RaiseSite& site) {
  const auto at_least_one = [](float scale) { return scale >= 1; };
  if (const Tensor* scales = site.constant(1); scales && scales->type() == onnx::TensorProto::FLOAT) {
    return std::ranges::all_of(scales->data<float>(), at_least_one);
  }
  return site.node().is("Upsample");  // which asks for scales of at least 1
}

/// Upsample and Resize 10 take coordinates as they are and the element before them; the defaults of 11 are
/// others.
Obstacle raise_resize_10(Draft& draft, const RaiseSite& site) {
  const bool nearest = draft.string_attribute("mode", "nearest") == "nearest";
  if (nearest && !enlarges(draft, site))
    return "which element is nearest when shrinking is not defined before opset 11";
  draft.set_text("coordinate_transformation_mode", "asymmetric");
  if (nearest) draft.set_text("nearest_mode", "floor");
  const std::string scales = draft.node().input(1);
  draft.set_input(1, "");
  draft.set_input(2, scales);
  return {};
}

Obstacle raise_resize_13(Draft& draft, const RaiseSite&) {
  if (draft.string_attribute("coordinate_transformation_mode", "") != "tf_half_pixel_for_nn") return {};
  return "coordinate_transformation_mode tf_half_pixel_for_nn is gone";
}

}  // namespace

void add_resize_rules(StepRules& rules) {
  rules[{"Upsample", 10}] = raise_upsample;
  rules[{"Resize", 11}] = raise_resize_10;
  rules[{"Resize", 13}] = raise_resize_13;
}

}  // namespace attn_opt
