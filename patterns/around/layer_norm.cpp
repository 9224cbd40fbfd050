// Layer normalisation over the last axis, as LayerNormalization of opset 17: an RMS normalisation (normalised.h) of x less its
// mean.
//
//   x ─┬─────────────── Sub ─ (normalised, weight, bias) ─ y
//      └─ ReduceMean ────┘
#include "patterns/around/normalised.h"

namespace attn_opt {
namespace {

class LayerNorm : public Rewrite {
 public:
  std::string_view name() const override { return "layer-norm"; }
  std::string_view summary() const override {
    return "(x - mean(x)) / sqrt(variance + eps) * weight + bias, as LayerNormalization";
  }
  bool is_anchor(const Node& node) const override { return node.is("Mul") || node.is("Div"); }

  Matched<RewriteMatch> match(const Node& node, RewriteContext& context) const override {
    Facts& facts = context.facts;
    Value *centre = nullptr, *x = nullptr;
    double epsilon = 0;
    ATTN_OPT_DONE(fits(normalised(&centre, &epsilon), *node.outputs[0], facts, std::string(kNoMatch)));
    ATTN_OPT_DONE(fits(centred(&x), *centre, facts, std::string(kNoMatch)));
    const MaybeShape shape = facts.shape(*x);
    if (!shape || shape->empty()) return missed("norm.size", &node, "the rank of '" + x->name + "' is not known");
    RewriteMatch match;
    match.peeled = {"ReduceMean", "Sub", "ReduceMean", node.op()};
    ATTN_OPT_DONE(enter(ends_of(*x, *node.outputs[0], shape->back(), true, facts), epsilon, shape->back(), node, facts, match));
    return match;
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
