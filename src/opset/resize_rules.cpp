#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "attn_opt/edit.h"
#include "src/opset/step_rules.h"

namespace attn_opt {
namespace {

using Obstacle = std::optional<std::string>;

constexpr const char* kCoordinates = "coordinate_transformation_mode";
constexpr const char* kNearest = "nearest_mode";

Obstacle make_resize(Draft& draft, const RaiseSite&) {
  draft.set_op("Resize");
  return {};
}

/// Which way the axes of a node of opset 10 change their size.
struct Scales {
  bool may_enlarge = true, may_shrink = true;
  bool may_keep_rows = true;  ///< no axis that grows may be longer behind it
};

/// True if an axis of SHAPE has more rows times its scale of VALUES.
bool adds_rows(MaybeShape shape, std::span<const float> values) {
  for (size_t axis = 0; shape && shape->size() == values.size() && axis < values.size(); ++axis) {
    const Dim& size = (*shape)[axis];
    if (size.is_constant() && std::floor(static_cast<float>(size.value()) * values[axis]) > static_cast<float>(size.value()))
      return true;
  }
  return false;
}

Scales scales_of(const RaiseSite& site) {
  if (site.node().is("Upsample")) return {true, false};  // which asks for scales of at least 1
  const Tensor* scales = site.constant(1);
  if (scales == nullptr || scales->type() != onnx::TensorProto::FLOAT) return {};
  const auto values = scales->data<float>();
  return {std::ranges::any_of(values, [](float scale) { return scale > 1; }),
          std::ranges::any_of(values, [](float scale) { return scale < 1; }), !adds_rows(site.shape(0), values)};
}

std::string enlarged(Draft& draft, const std::string& input, const std::string& growth) {
  return draft.add("Resize", {input, "", growth}, {Draft::text(kCoordinates, "asymmetric"), Draft::text(kNearest, "floor")});
}

/// The same beside an axis more, which grows: ONNX Runtime copies where no size changes, as of 5 rows times 1.1, though the
/// second is the first again then. It stands behind batch and channels, since OpenVINO resizes no other axes than those.
std::string enlarged_beside_another(Draft& draft, const std::string& input, const std::string& growth) {
  constexpr int64_t kAxis = 2;
  const auto along = [](int64_t axis) { return Draft::Attributes{GraphBuilder::attribute("axis", axis)}; };
  const std::string zero = draft.add_ints({0}), axis = draft.add_ints({kAxis});
  const std::string two = draft.add_constant(Tensor::of<float>({1}, std::vector<float>{2}));
  const std::string first = draft.add("Slice", {growth, zero, axis, zero});
  const std::string rest = draft.add("Slice", {growth, axis, draft.add_ints({std::numeric_limits<int64_t>::max()}), zero});
  const std::string above = draft.add("Unsqueeze", {input, axis});
  const std::string grown = enlarged(draft, above, draft.add("Concat", {first, two, rest}, along(0)));
  return draft.add("Gather", {grown, draft.add_constant(Tensor::scalar<int64_t>(0))}, along(kAxis));
}

/// Where an axis grows, the nearest element was the one before, where it shrinks the one behind: a node that
/// does both becomes two, the first of which does what there is to enlarge.
void raise_nearest(Draft& draft, const Scales& scales) {
  std::string input = draft.node().input(0), factors = draft.node().input(1);
  if (scales.may_enlarge && scales.may_shrink) {
    const std::string one = draft.add_constant(Tensor::scalar<float>(1));
    const std::string growth = draft.add("Max", {factors, one});
    factors = draft.add("Min", {factors, one});
    input = scales.may_keep_rows ? enlarged_beside_another(draft, input, growth) : enlarged(draft, input, growth);
  }
  draft.set_text(kNearest, scales.may_shrink ? "ceil" : "floor");
  draft.set_input(0, input);
  draft.set_input(1, factors);
}

/// Upsample and Resize 10 take coordinates as they are; the defaults of 11 are others.
Obstacle raise_resize_10(Draft& draft, const RaiseSite& site) {
  if (draft.string_attribute("mode", "nearest") == "nearest") raise_nearest(draft, scales_of(site));
  draft.set_text(kCoordinates, "asymmetric");
  const std::string scales = draft.node().input(1);
  draft.set_input(1, "");
  draft.set_input(2, scales);
  return {};
}

/// Of scales and sizes one had to be empty; from opset 13 on it may, and from 18 on must, be left out. In a function the caller
/// may be the only one who knows which.
Obstacle leave_out_empty(Draft& draft, const RaiseSite& site) {
  constexpr int kScales = 2, kSizes = 3;
  if (draft.node().input_size() <= kSizes) return {};
  for (const int input : {kScales, kSizes}) {
    const MaybeShape shape = site.shape(static_cast<size_t>(input));
    if (shape && shape->size() == 1 && shape->front().is(0)) draft.set_input(input, "");
  }
  if (draft.node().input(kScales).empty() || draft.node().input(kSizes).empty()) return {};
  return "which of scales and sizes is empty is not known";
}

/// tf_half_pixel_for_nn is half_pixel without its last term, -0.5. Rounding down what is 0.5 larger is
/// rounding to the nearest, ties up; rounding it to the nearest, ties down, is rounding up.
Obstacle raise_resize_13(Draft& draft, const RaiseSite& site) {
  if (auto obstacle = leave_out_empty(draft, site)) return obstacle;
  if (draft.string_attribute(kCoordinates, "") != "tf_half_pixel_for_nn") return {};
  const std::string nearest = draft.string_attribute(kNearest, "round_prefer_floor");
  if (draft.string_attribute("mode", "nearest") != "nearest" || (nearest != "floor" && nearest != "round_prefer_floor"))
    return "coordinate_transformation_mode tf_half_pixel_for_nn is gone";
  draft.set_text(kCoordinates, "half_pixel");
  draft.set_text(kNearest, nearest == "floor" ? "round_prefer_ceil" : "ceil");
  return {};
}

}  // namespace

void add_resize_rules(StepRules& rules) {
  rules[{"Upsample", 10}] = make_resize;
  rules[{"Resize", 11}] = raise_resize_10;
  rules[{"Resize", 13}] = raise_resize_13;
}

}  // namespace attn_opt
