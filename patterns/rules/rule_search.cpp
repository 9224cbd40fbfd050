#include "patterns/rules/rule_search.h"

#include <algorithm>

#include "attn_opt/canonical.h"
#include "patterns/rules/rule_constants.h"
#include "src/graph/operator_name.h"

namespace attn_opt {

RuleSearch::RuleSearch(const Rule& rule)
    : rule_(&rule),
      anchor_(maker_of(rule.pattern, rule.pattern.output(0))),
      nodes_(std::count_if(rule.pattern.node().begin(), rule.pattern.node().end(),
                           [](const auto& node) { return !is_constant_node(node); })) {
  if (is_commutative(*anchor_)) return;
  for (const std::string& input : anchor_->input()) {
    const onnx::NodeProto* maker = maker_of(rule.pattern, input);
    operands_.push_back(maker && !is_constant_node(*maker) ? maker : nullptr);
  }
}

Matched<RuleBinding> RuleSearch::find(const Node& anchor, const ModelGraph& view, Facts& facts,
                                      std::string_view nothing) const {
  if (std::string other = other_operand(anchor, facts); !other.empty())
    return missed(std::string(nothing), &anchor, std::move(other));
  auto binding = match_rule(*rule_, anchor, view, facts);
  if (binding) return binding;
  const bool is_near =
      binding.error().id != "rule.structure" || 4 * static_cast<int64_t>(binding.error().peeled.size()) >= 3 * nodes_;
  if (!is_near) binding.error().id = nothing;
  return binding;
}

/// A rule is tried at every node like its last, and nearly all of them end here.
std::string RuleSearch::other_operand(const Node& anchor, Facts& facts) const {
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (!operands_[i]) continue;
    const Value* input = anchor.input(i);
    if (input && input->producer && is_operator(*operands_[i], *input->producer)) continue;
    const Node* found = input ? canonical(*anchor.input(i), facts).producer : nullptr;
    if (found && is_operator(*operands_[i], *found)) continue;
    const std::string name = input ? "'" + input->name + "'" : "input " + std::to_string(i);
    return name + " is " +
           (found   ? operator_name(*found)
            : input ? "an input or a constant"
                    : "absent") +
           ", not " + operands_[i]->op_type();
  }
  return {};
}

Value* value_of_output(const std::string& name, const Rule& rule, const RuleBinding& binding) {
  const auto& outputs = rule.pattern.output();
  if (std::ranges::find(outputs, name) == outputs.end()) return nullptr;
  const onnx::NodeProto* maker = maker_of(rule.pattern, name);
  const auto number = std::find(maker->output().begin(), maker->output().end(), name) - maker->output().begin();
  return binding.nodes.at(maker->output(0))->output(static_cast<size_t>(number));
}

Matched<GraphBuilder::Attributes> attributes_of(const onnx::NodeProto& proto, const Rule& rule, const RuleBinding& binding,
                                                const Node* anchor) {
  GraphBuilder::Attributes attributes;
  for (const auto& attribute : proto.attribute()) {
    attributes.emplace_back(attribute);
    if (attribute.ref_attr_name().empty()) continue;
    const auto bound = binding.attributes.find(attribute.ref_attr_name());
    if (bound == binding.attributes.end() || bound->second.type() != attribute.type())
      return missed("rule.parameter", anchor,
                    "'" + attribute.ref_attr_name() + "' of " + rule.name + " has no value of that type");
    onnx::AttributeProto value = bound->second;
    value.set_name(attribute.name());
    attributes.back() = std::move(value);
  }
  return attributes;
}

std::string operator_of(const onnx::NodeProto& proto) {
  return proto.domain().empty() ? proto.op_type() : proto.domain() + "::" + proto.op_type();
}

}  // namespace attn_opt
