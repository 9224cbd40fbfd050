#include "src/emit/operators.h"

#include <utility>

namespace attn_opt {

const AttentionOperator& operator_for(const WritingPlan& plan, const Sdpa& sdpa, const TargetRules& target) {
  if (target.family == OperatorFamily::kOnnx) return kOnnxAttention;
  const bool is_group_query = plan.kv_group > 1 || sdpa.softcap != 0 || sdpa.left_window;
  return is_group_query ? kGroupQueryAttention : kMultiHeadAttention;
}

Matched<void> check_anchor(const Match& match, const TargetRules& target) {
  if (target.family != OperatorFamily::kMicrosoft || match.anchor->domain() != "com.microsoft") return {};
  return missed("target.contrib", match.anchor, match.anchor->op() + " is an operator of the target's already");
}

std::vector<Value*> inputs_of(const NodeParts& parts) {
  const bool has_past = parts.plan.has_past;
  return {parts.operands.q.value,
          parts.operands.k.value,
          parts.operands.v.value,
          parts.mask,
          has_past ? parts.plan.k->past : nullptr,
          has_past ? parts.plan.v->past : nullptr,
          parts.lengths};
}

Node* write_node(const char* op, std::vector<Value*> inputs, const GraphBuilder::Attributes& attributes, const NodeParts& parts,
                 Site& site) {
  while (!inputs.back()) inputs.pop_back();
  std::vector<bool> wanted{true, parts.plan.has_past, parts.plan.has_past, parts.further.wants_scores()};
  while (!wanted.back()) wanted.pop_back();
  return site.build.new_node(op, inputs, wanted, attributes);
}

}  // namespace attn_opt
