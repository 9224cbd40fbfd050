// RMS normalisation over the last axis, as RMSNormalization of opset 23; norm_form.h has the drawing.
#include "patterns/around/normalised.h"

namespace attn_opt {
namespace {

class RmsNorm : public Rewrite {
 public:
  std::string_view name() const override { return "rms-norm"; }
  std::string_view summary() const override { return "x / sqrt(mean(x^2) + eps) * weight, as RMSNormalization"; }
  bool is_anchor(const Node& node) const override { return may_normalise(node); }

  Matched<RewriteMatch> match(const Node& node, RewriteContext& context) const override {
    ATTN_OPT_MATCH(const NormForm form, norm_form(*node.outputs[0], context.facts));
    if (form.centred) return missed(std::string(kNoMatch), &node, "'" + form.x->name + "' is centred: a layer normalisation");
    return norm_match(form, node, context.facts);
  }

  Matched<std::vector<Replacement>> apply(const RewriteMatch& match, GraphBuilder& build) const override {
    Value* made = build.node("RMSNormalization", {match.value("x"), weight_of(match, build)}, norm_attributes(match));
    return std::vector<Replacement>{{match.value("y"), made}};
  }
};

}  // namespace

ATTN_OPT_REGISTER_REWRITE(RmsNorm)

}  // namespace attn_opt
