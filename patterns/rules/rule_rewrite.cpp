// Rules whose replacement has no Attention node, as rewrites.
//
//   before   what the rule's `pattern` says     after   what its `replacement` says
//
//   inputs ── (pattern's nodes) ── outputs      inputs ── (replacement's nodes) ── outputs
#include <utility>

#include "attn_opt/rules.h"
#include "patterns/rules/rule_constants.h"
#include "patterns/rules/rule_search.h"

namespace attn_opt {
namespace {

class RuleRewrite : public Rewrite {
 public:
  explicit RuleRewrite(Rule rule) : rule_(std::move(rule)), search_(rule_) {}

  std::string_view name() const override { return rule_.name; }
  std::string_view summary() const override { return rule_.about; }
  bool is_anchor(const Node& node) const override { return search_.is_anchor(node); }

  Matched<RewriteMatch> match(const Node& node, RewriteContext& context) const override {
    ATTN_OPT_MATCH(RuleBinding binding, search_.find(node, context.view, context.facts, kNoMatch));
    RewriteMatch match;
    match.peeled = binding.operators();
    match.more = std::move(binding);
    return match;
  }

  Matched<std::vector<Replacement>> apply(const RewriteMatch& match, GraphBuilder& build) const override {
    const auto& binding = std::any_cast<const RuleBinding&>(match.more);
    ReplacementValues values(build);
    for (const std::string& input : rule_.replacement.input()) values.set(input, binding.values.at(input));
    for (const auto& proto : rule_.replacement.node()) {
      if (values.takes_constant(proto)) continue;
      ATTN_OPT_MATCH(const GraphBuilder::Attributes attributes, attributes_of(proto, rule_, binding, &build.edit().anchor()));
      std::vector<Value*> inputs;
      for (const std::string& input : proto.input()) inputs.push_back(values.at(input));
      std::vector<bool> wanted;
      for (const std::string& output : proto.output()) wanted.push_back(!output.empty());
      const Node* node = build.new_node(operator_of(proto), inputs, wanted, attributes);
      for (int i = 0; i < proto.output_size(); ++i) values.set(proto.output(i), node->output(static_cast<size_t>(i)));
    }
    std::vector<Replacement> replacements;
    for (const std::string& output : rule_.replacement.output())
      replacements.push_back({value_of_output(output, rule_, binding), values.at(output)});
    return replacements;
  }

 private:
  Rule rule_;
  RuleSearch search_;
};

}  // namespace

Expected<std::unique_ptr<Rewrite>> parse_rewrite(std::string_view text, const std::string& where) {
  ATTN_OPT_TRY(Rule rule, read_rule(text, where));
  return rewrite_of(std::move(rule), where);
}

Expected<std::unique_ptr<Rewrite>> rewrite_of(Rule rule, const std::string& where) {
  if (writes_attention(rule))
    return fail(ErrorCode::kInvalidInput, where, "the replacement has an Attention node: the rule is a pattern, not a rewrite");
  return std::make_unique<RuleRewrite>(std::move(rule));
}

}  // namespace attn_opt
