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
  rules[{"Scan", 9}] = raise_scan;
  rules[{"PRelu", 7}] = raise_prelu;
}

}  // namespace attn_opt
