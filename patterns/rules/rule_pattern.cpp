// Rules as patterns: what a rule's file spells is matched and described like any other front end.
//
//   before   what the rule's `pattern` says            after   what its `replacement` means
//
//   inputs ── (pattern's nodes) ── outputs             inputs ── (replacement's nodes) ── Attention ── layout ── outputs
//
// The nodes of the replacement above its Attention node are unplaced: an emission takes those it reads.
#include <algorithm>
#include <utility>

#include "attn_opt/rules.h"
#include "patterns/attention_description.h"
#include "patterns/inner_values.h"
#include "patterns/operands/operand_walk.h"
#include "patterns/preconditions.h"
#include "patterns/rules/rule_search.h"

namespace attn_opt {
namespace {

/// The replacement of a rule, drafted in place of one match of its pattern.
class RuleDraft {
 public:
  RuleDraft(const Rule& rule, const RuleBinding& binding, Node& anchor, MatchContext& context)
      : rule_(rule), binding_(binding), anchor_(anchor), context_(context), inner_(anchor, context) {}

  Matched<Sdpa> describe() {
    for (const std::string& input : rule_.replacement.input()) made_[input] = binding_.values.at(input);
    for (const auto& node : rule_.replacement.node()) ATTN_OPT_DONE(add(node));
    ATTN_OPT_MATCH(Sdpa sdpa, describe_attention(*attention_, outputs_of_attention(), context_));
    ATTN_OPT_MATCH(const AxisMap axes, axes_of_output(sdpa.outputs[0].axes));
    sdpa.outputs = walk_output(*model_value(rule_.replacement.output(0)), axes, context_);
    for (const std::string& id : rule_.assumed) assume(id, "assumed by the rule " + rule_.name, sdpa);
    return sdpa;
  }

 private:
  Value* model_value(const std::string& name) const { return value_of_output(name, rule_, binding_); }

  AttentionOutputs outputs_of_attention() const {
    const auto wanted = [&](int output) -> Value* {
      return output < attention_proto_->output_size() ? model_value(attention_proto_->output(output)) : nullptr;
    };
    return {model_value(rule_.replacement.output(0)), wanted(1), wanted(2), wanted(3)};
  }

  Matched<void> add(const onnx::NodeProto& proto) {
    std::vector<Value*> inputs;
    for (const std::string& input : proto.input()) inputs.push_back(input.empty() ? nullptr : made_.at(input));
    ATTN_OPT_MATCH(const GraphBuilder::Attributes attributes, attributes_of(proto, rule_, binding_, &anchor_));
    const std::string op = operator_of(proto);
    const std::vector<bool> wanted(static_cast<size_t>(proto.output_size()), true);
    const bool is_attention = proto.op_type() == "Attention";
    if (proto.output_size() == 1 && !is_attention) {
      made_[proto.output(0)] = inner_.build().node(op, inputs, attributes);
      return {};
    }
    Node* node = inner_.build().new_node(op, inputs, wanted, attributes);
    if (is_attention) {
      attention_ = node;
      attention_proto_ = &proto;
    }
    for (int i = 0; i < proto.output_size(); ++i) made_[proto.output(i)] = node->output(static_cast<size_t>(i));
    return {};
  }

  /// The axes of the first output, through the layout that follows the Attention node, whose Y has AXES.
  Matched<AxisMap> axes_of_output(AxisMap axes) const {
    std::vector<const Node*> behind;
    for (Node* node = made_.at(rule_.replacement.output(0))->producer; node != attention_; node = node->inputs[0]->producer)
      behind.push_back(node);
    for (auto node = behind.rbegin(); node != behind.rend(); ++node) {
      auto next = axes_after(**node, axes, context_);
      if (!next)
        return missed("rule.output", &anchor_,
                      "where " + (*node)->op() + " of " + rule_.name + " puts its axes cannot be told");
      axes = *std::move(next);
    }
    return axes;
  }

  const Rule& rule_;
  const RuleBinding& binding_;
  Node& anchor_;
  MatchContext& context_;
  InnerValues inner_;
  std::map<std::string, Value*> made_;
  Node* attention_ = nullptr;
  const onnx::NodeProto* attention_proto_ = nullptr;
};

class RulePattern : public Pattern {
 public:
  explicit RulePattern(Rule rule) : rule_(std::move(rule)), search_(rule_) {}

  std::string_view name() const override { return rule_.name; }
  std::string_view summary() const override { return rule_.about; }
  bool is_anchor(const Node& node) const override { return search_.is_anchor(node); }

  Matched<Match> match(Node& anchor, MatchContext& context) const override {
    ATTN_OPT_MATCH(const RuleBinding binding, search_.find(anchor, context.view, context.facts, kNotAttention));
    Match match;
    match.anchor = match.insert_before = &anchor;
    match.peeled = binding.operators();
    ATTN_OPT_MATCH(match.sdpa, RuleDraft(rule_, binding, anchor, context).describe());
    return match;
  }

 private:
  Rule rule_;
  RuleSearch search_;
};

}  // namespace

Expected<std::unique_ptr<Pattern>> parse_rule(std::string_view text, const std::string& where) {
  ATTN_OPT_TRY(Rule rule, read_rule(text, where));
  return pattern_of(std::move(rule), where);
}

Expected<std::unique_ptr<Pattern>> pattern_of(Rule rule, const std::string& where) {
  if (!writes_attention(rule))
    return fail(ErrorCode::kInvalidInput, where,
                "the replacement has no Attention node: the rule is a rewrite, not a pattern of attention");
  return std::make_unique<RulePattern>(std::move(rule));
}

}  // namespace attn_opt
