// Layer normalisation over the last axis, as LayerNormalization of opset 17; norm_form.h has the equation.
//
//   x ─┬─────────────── Sub ─┬───────────────────────────────────────── Div ─ Mul ─ Add ─ y      LayerNormalization ─ y
//      └─ ReduceMean ────┘    └─ Pow(2) ─ ReduceMean ─ Add eps ─ Sqrt ───┘
#include "patterns/around/normalised.h"

namespace attn_opt {
namespace {

class LayerNorm : public Rewrite {
 public:
  std::string_view name() const override { return "layer-norm"; }
  std::string_view summary() const override {
    return "(x - mean(x)) / sqrt(variance + eps) * weight + bias, as LayerNormalization";
  }
  bool is_anchor(const Node& node) const override { return may_normalise(node); }

  Matched<RewriteMatch> match(const Node& node, RewriteContext& context) const override {
    ATTN_OPT_MATCH(const NormForm form, norm_form(*node.outputs[0], context.facts));
    if (!form.centred)
      return missed(std::string(kNoMatch), &node, "'" + form.x->name + "' is not centred: an RMS normalisation");
    return norm_match(form, node, context.facts);
  }

  Matched<std::vector<Replacement>> apply(const RewriteMatch& match, GraphBuilder& build) const override {
    std::vector<Value*> inputs = {match.value("x"), weight_of(match, build)};
    if (Value* bias = match.value("bias")) inputs.push_back(bias);
    return std::vector<Replacement>{{match.value("y"), build.node("LayerNormalization", inputs, norm_attributes(match))}};
  }
};

}  // namespace

ATTN_OPT_REGISTER_REWRITE(LayerNorm)

}  // namespace attn_opt
