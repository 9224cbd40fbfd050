#include "attn_opt/edit.h"
#include "src/opset/step_rules.h"

namespace attn_opt {
namespace {

using Obstacle = std::optional<std::string>;
using P = onnx::TensorProto;

/// Without sizes, Split makes as many parts as it has outputs; from 18 on their number must be said.
Obstacle raise_split(Draft& draft, const RaiseSite&) {
  if (!draft.has_input(1)) draft.set(GraphBuilder::attribute("num_outputs", int64_t{draft.node().output_size()}));
  return {};
}

Obstacle raise_scatter(Draft& draft, const RaiseSite&) {
  draft.set_op("ScatterElements");
  return {};
}

/// Before 16 there was one coordinate mode, which is not the default since.
Obstacle raise_roi_align(Draft& draft, const RaiseSite&) {
  draft.set_text("coordinate_transformation_mode", "output_half_pixel");
  return {};
}

/// The modes were renamed when more than two spatial axes were allowed.
Obstacle raise_grid_sample(Draft& draft, const RaiseSite&) {
  const std::string mode = draft.string_attribute("mode", "bilinear");
  if (mode == "bicubic") draft.set_text("mode", "cubic");
  if (mode == "bilinear") draft.set_text("mode", "linear");
  return {};
}

bool has_no_infinity(int64_t type) { return type == P::FLOAT8E4M3FNUZ || type == P::FLOAT8E5M2FNUZ; }

/// Infinity cast with saturation became NaN in these types, and becomes the largest value since 24.
Obstacle raise_cast(Draft& draft, const RaiseSite& site) {
  const bool says_type = draft.node().op_type() == "Cast";
  const int64_t to = says_type ? draft.int_attribute("to", 0) : int64_t{site.type(1)};
  if (!has_no_infinity(to) || site.type(0) == to || draft.int_attribute("saturate", 1) == 0) return {};
  return "infinity cast to " + type_name(static_cast<DataType>(to)) +
         " is NaN before opset 24 and the largest value from then on";
}

/// ONNX Runtime divides in float32 up to opset 22, and in the type of the scale, unless told otherwise, from 23 on.
Obstacle raise_quantize_linear(Draft& draft, const RaiseSite& site) {
  if (site.type(1) == P::UNDEFINED) return "the type of its scale is not known";
  if (site.type(1) != P::FLOAT) draft.set(GraphBuilder::attribute("precision", int64_t{P::FLOAT}));
  return {};
}

/// In float16 ONNX Runtime runs the body that ONNX gives the operator at opset 18, log(exp(x) + 1) in float32, which is Inf
/// from 89 on, and a kernel of its own at every other opset.
Obstacle raise_softplus(Draft& draft, const RaiseSite& site) {
  constexpr int kVersionOfBody = 18;
  if (site.from() != kVersionOfBody || site.type(0) != P::FLOAT16) return {};
  const auto cast_to = [](DataType type) { return Draft::Attributes{GraphBuilder::attribute("to", int64_t{type})}; };
  const std::string wide = draft.add("Cast", {draft.node().input(0)}, cast_to(P::FLOAT));
  const std::string one = draft.add_constant(Tensor::scalar<float>(1));
  draft.set_input(0, draft.add("Add", {draft.add("Exp", {wide}), one}));
  draft.set_op("Log");
  draft.append("Cast", {draft.divert_output(0)}, draft_output(0), cast_to(P::FLOAT16));
  return {};
}

Obstacle raise_scan(Draft&, const RaiseSite&) { return "its batch axis is gone"; }

/// A slope of rank 1 belonged to the channels, and is broadcast against the last axis since 7.
Obstacle raise_prelu(Draft&, const RaiseSite& site) {
  const MaybeShape slope = site.shape(1);
  if (slope && product(*slope).is(1)) return {};
  return "its slope belongs to the channels before opset 7";
}

}  // namespace

void add_meaning_rules(StepRules& rules) {
  rules[{"Split", 18}] = raise_split;
  rules[{"Scatter", 11}] = raise_scatter;
  rules[{"RoiAlign", 16}] = raise_roi_align;
  rules[{"GridSample", 20}] = raise_grid_sample;
  rules[{"Cast", 24}] = raise_cast;
  rules[{"CastLike", 24}] = raise_cast;
  rules[{"QuantizeLinear", 23}] = raise_quantize_linear;
  rules[{"Scan", 9}] = raise_scan;
  rules[{"Softplus", 22}] = raise_softplus;
  rules[{"PRelu", 7}] = raise_prelu;
}

}  // namespace attn_opt
