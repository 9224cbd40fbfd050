#include "src/opset/step_rules.h"
#include "src/trial/infinity.h"

namespace attn_opt {
namespace {

using Obstacle = std::optional<std::string>;

/// The list in attribute NAME becomes a constant at input I; absent, the input is omitted and means the same.
void move_ints(Draft& draft, const std::string& name, int i) {
  if (const auto* list = draft.attribute(name)) {
    draft.set_input(i, draft.add_ints({list->ints().begin(), list->ints().end()}));
    draft.drop(name);
  }
}

StepRule ints_to_input(const std::string& name) {
  return [name](Draft& draft, const RaiseSite&) -> Obstacle {
    move_ints(draft, name, 1);
    return {};
  };
}

/// The number in attribute NAME becomes a scalar of the type of input 0 at input I.
Obstacle move_float(Draft& draft, const RaiseSite& site, const std::string& name, int i) {
  const auto* number = draft.attribute(name);
  if (number == nullptr) return {};
  if (site.type(0) == onnx::TensorProto::UNDEFINED) return "the type of its input is not known";
  const auto scalar = Tensor::scalar<float>(number->f()).cast(site.type(0));
  if (!scalar) return "attribute " + name + " cannot be of type " + type_name(site.type(0));
  draft.set_input(i, draft.add_constant(*scalar));
  draft.drop(name);
  return {};
}

Obstacle raise_slice(Draft& draft, const RaiseSite&) {
  move_ints(draft, "starts", 1);
  move_ints(draft, "ends", 2);
  move_ints(draft, "axes", 3);
  return {};
}

Obstacle raise_clip(Draft& draft, const RaiseSite& site) {
  if (auto obstacle = move_float(draft, site, "min", 1)) return obstacle;
  return move_float(draft, site, "max", 2);
}

/// Up to 11 ONNX Runtime computes halves in float, whose ends are -inf and inf among them; the kernel since has the half's own
/// ends for a bound that is left out.
Obstacle bound_halves(Draft& draft, const RaiseSite& site) {
  for (const int i : {1, 2}) {
    if (draft.node().input_size() > i && !draft.node().input(i).empty()) continue;
    if (site.type(0) == onnx::TensorProto::UNDEFINED) return "the type of its input is not known";
    if (site.type(0) != onnx::TensorProto::FLOAT16) return {};
    const Tensor bound = Tensor::scalar<float>(static_cast<float>(i == 1 ? -kInfinity : kInfinity));
    draft.set_input(i, draft.add_constant(bound.cast(site.type(0)).value()));
  }
  return {};
}

Obstacle raise_pad(Draft& draft, const RaiseSite& site) {
  move_ints(draft, "pads", 1);
  return move_float(draft, site, "value", 2);
}

/// The mask holds ones since 12; before, nothing was said of it.
Obstacle raise_dropout_mask(Draft& draft, const RaiseSite& site) {
  const Value* mask = site.node().output(1);
  if (mask != nullptr && !mask->unused()) return "its mask is read, which is not defined before opset 12";
  if (draft.node().output_size() > 1) draft.drop_outputs_from(1);
  return {};
}

/// ONNX Runtime has a Dropout of half floats up to 11, and checks the ratio, which inference ignores, since.
bool has_later_kernel(const RaiseSite& site, float ratio) {
  return site.type(0) != onnx::TensorProto::FLOAT16 && ratio >= 0 && ratio < 1;
}

/// The ratio is kept where it can be because it belongs to the model.
Obstacle raise_dropout(Draft& draft, const RaiseSite& site) {
  if (auto obstacle = raise_dropout_mask(draft, site)) return obstacle;
  const auto* ratio = draft.attribute("ratio");
  if (!has_later_kernel(site, ratio == nullptr ? 0.5f : ratio->f())) {
    draft.set_op("Identity");
    draft.drop("ratio");
  } else if (ratio != nullptr) {
    draft.set_input(1, draft.add_constant(Tensor::scalar<float>(ratio->f())));
    draft.drop("ratio");
  }
  return {};
}

Obstacle raise_top_k(Draft& draft, const RaiseSite&) {
  draft.set_input(1, draft.add_ints({draft.int_attribute("k", 0)}));
  draft.drop("k");
  return {};
}

/// The axis is an input from opset 20 on. OpenVINO 2026.4 does not read it and takes 1, which was the default before: the axis
/// is brought there where the rank is known.
Obstacle raise_dft(Draft& draft, const RaiseSite& site) {
  constexpr int64_t kDefault = 1;
  const int64_t axis = draft.int_attribute("axis", kDefault);
  draft.drop("axis");
  const MaybeShape shape = site.shape(0);
  const auto rank = shape ? static_cast<int64_t>(shape->size()) : 0;
  const int64_t from = axis < 0 ? axis + rank : axis;
  const bool is_known = rank > kDefault && from >= 0 && from < rank;
  draft.set_input(2, draft.add_constant(Tensor::scalar<int64_t>(is_known ? kDefault : axis)));
  if (!is_known || from == kDefault) return {};
  onnx::AttributeProto perm;
  perm.set_name("perm");
  perm.set_type(onnx::AttributeProto::INTS);
  for (int64_t i = 0; i < rank; ++i) perm.add_ints(i == from ? kDefault : i == kDefault ? from : i);
  draft.set_input(0, draft.add("Transpose", {draft_input(0)}, {perm}));
  draft.append("Transpose", {draft.divert_output(0)}, draft_output(0), {perm});
  return {};
}

Obstacle make_scales_an_input(Draft& draft, const RaiseSite&) {
  const auto* scales = draft.attribute("scales");
  if (scales == nullptr) return "it has no scales";
  const std::vector<float> values(scales->floats().begin(), scales->floats().end());
  draft.set_input(1, draft.add_constant(Tensor::of<float>({static_cast<int64_t>(values.size())}, values)));
  draft.drop("scales");
  return {};
}

}  // namespace

void add_input_rules(StepRules& rules) {
  for (const char* op : {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
                         "ReduceProd", "ReduceSumSquare"}) {
    rules[{op, 18}] = ints_to_input("axes");
  }
  for (const char* op : {"ReduceSum", "Squeeze", "Unsqueeze"}) rules[{op, 13}] = ints_to_input("axes");
  rules[{"Split", 13}] = ints_to_input("split");
  rules[{"Slice", 10}] = raise_slice;
  rules[{"Clip", 11}] = raise_clip;
  rules[{"Clip", 12}] = bound_halves;
  rules[{"Pad", 11}] = raise_pad;
  rules[{"Dropout", 10}] = raise_dropout_mask;
  rules[{"Dropout", 12}] = raise_dropout;
  rules[{"TopK", 10}] = raise_top_k;
  rules[{"DFT", 20}] = raise_dft;
  rules[{"Upsample", 9}] = make_scales_an_input;
}

}  // namespace attn_opt
