// RMS normalisation over the last axis, as RMSNormalization of opset 23; normalised.h has the drawing.
#include "patterns/around/normalised.h"

namespace attn_opt {
namespace {

class RmsNorm : public Rewrite {
 public:
  std::string_view name() const override { return "rms-norm"; }
  std::string_view summary() const override { return "x / sqrt(mean(x^2) + eps) * weight, as RMSNormalization"; }
  bool is_anchor(const Node& node) const override { return node.is("Mul") || node.is("Div"); }

  Matched<RewriteMatch> match(const Node& node, RewriteContext& context) const override {
    Facts& facts = context.facts;
    Value *x = nullptr, *before = nullptr;
    double epsilon = 0;
    ATTN_OPT_DONE(fits(normalised(&x, &epsilon), *node.outputs[0], facts, std::string(kNoMatch)));
    if (centred(&before)(*x, facts))
      return missed(std::string(kNoMatch), &node, "'" + x->name + "' is centred: a layer normalisation");
    const MaybeShape shape = facts.shape(*x);
    if (!shape || shape->empty()) return missed("norm.size", &node, "the rank of '" + x->name + "' is not known");
    RewriteMatch match;
    match.peeled = {"ReduceMean", node.op()};
    ATTN_OPT_DONE(
        enter(ends_of(*x, *node.outputs[0], shape->back(), false, facts), epsilon, shape->back(), node, facts, match));
    return match;
  }

  Matched<std::vector<Replacement>> apply(const RewriteMatch& match, GraphBuilder& build) const override {
    Value* made = build.node("RMSNormalization", {match.value("x"), weight_of(match, build)}, norm_attributes(match));
    return std::vector<Replacement>{{match.value("y"), made}};
  }
};

}  // namespace

ATTN_OPT_REGISTER_REWRITE(RmsNorm)

}  // namespace attn_opt
