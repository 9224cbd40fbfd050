// Attention nodes that an exporter wrote.
//
//   before   past ─┐                                        after   Q ────────┐
//            K ── Concat ─ Unsqueeze ─ Expand ─ Reshape ┐           K ────────┤
//            Q ───────────────────────── Attention(23) ─┼─ Y        V ────────┼─ Attention(24, kv heads, past) ─ Y
//            V ── Concat ─ Unsqueeze ─ Expand ─ Reshape ┘           mask ─────┤
//                                                                   past ─────┘
//
// The operands are walked like those of any attention, so that repeated heads, caches and layouts in front of the node
// go into it. A node of the opset that is written is a site only if that gains something, if it breaks a rule of the target, or
// if the target has an operator that is faster.
#include "attn_opt/pattern.h"
#include "patterns/attention_description.h"
#include "patterns/operands/operand_walk.h"
#include "patterns/preconditions.h"
#include "patterns/target_breach.h"
#include "src/graph/attention_inputs.h"
#include "src/rewrite/faster_operators.h"

namespace attn_opt {
namespace {

Value* output_read(const Node& node, size_t output) {
  Value* value = node.output(output);
  return value && !value->unused() ? value : nullptr;
}

/// The version of Attention that a model of OPSET has.
int attention_version(int opset) { return std::min(opset, 25); }

/// True if ONNX Runtime runs what is written in the place of NODE otherwise: by operators of com.microsoft, or by the
/// operator's function, as Attention of opset 25.
bool is_for_another_kernel(const Node& node, const MatchContext& context) {
  constexpr int kFirstWithoutKernel = 25;
  const bool loses_kernel =
      context.view.opset(*node.graph) < kFirstWithoutKernel && context.view.edit_opset() >= kFirstWithoutKernel;
  return context.target.family == OperatorFamily::kMicrosoft || (loses_kernel && !context.target.tells_lowest_from_infinity);
}

/// True if the target has an operator that is faster than NODE, which is given nothing beside Q, K and V.
bool has_faster_operator_for(const Node& node, const Sdpa& sdpa, const MatchContext& context) {
  const auto is_there = [](const Value* value) { return value != nullptr; };
  if (!context.target.faster || std::any_of(node.inputs.begin() + kMask, node.inputs.end(), is_there)) return false;
  return may_have_faster_operator(sdpa) &&
         has_faster_operator(sdpa.is_causal, sdpa.q.views[0].axes.size(Role::kRow), sdpa.k.views[0].axes.size(Role::kRow));
}

bool gains_something(const Operand& operand) {
  const OperandView& written = operand.views.front();
  for (const OperandView& view : operand.views)
    if (view.axes.has_repeats() || (view.past && !written.past)) return true;
  return false;
}

class AttentionNode : public Pattern {
 public:
  std::string_view name() const override { return "attention_node"; }
  std::string_view summary() const override {
    return "Attention nodes of opset 23, and of 24 behind repeated heads or a KV cache or against the target's rules";
  }
  bool is_anchor(const Node& node) const override { return node.is("Attention"); }

  Matched<Match> match(Node& node, MatchContext& context) const override {
    Match match;
    match.anchor = match.insert_before = &node;
    match.is_target_form = context.target.family == OperatorFamily::kOnnx &&
                           attention_version(context.view.opset(*node.graph)) == attention_version(context.view.edit_opset());
    const AttentionOutputs outputs{node.output(kY), output_read(node, kPresentKey), output_read(node, kPresentValue),
                                   output_read(node, kScores)};
    ATTN_OPT_MATCH(match.sdpa, describe_attention(node, outputs, context));
    Sdpa& sdpa = match.sdpa;
    const bool is_slower = has_faster_operator_for(node, sdpa, context);
    if (is_slower || is_for_another_kernel(node, context))
      if (auto rows = rows_keep_a_key_of_kernel(sdpa, context.facts)) sdpa.preconditions.push_back(*std::move(rows));
    sdpa.outputs = walk_output(*sdpa.outputs[0].value, sdpa.outputs[0].axes, context);
    const std::string breach = match.is_target_form ? target_breach(node, sdpa, context) : "";
    match.breaks_target = !breach.empty();
    if (match.is_target_form && !match.breaks_target && !is_slower && !gains_something(sdpa.k) && !gains_something(sdpa.v))
      return missed(std::string(kNotAttention), &node, "");
    const Dim group = sdpa.k.views.front().axes.size(Role::kHead);
    if (auto heads = exact_quotient(sdpa.query_heads, group); heads && heads->is_constant()) match.kv_group = heads->value();
    match.has_past = sdpa.k.views.front().past != nullptr;
    match.peeled = {match.breaks_target ? "Attention(" + breach + ")" : "Attention"};
    return match;
  }
};

}  // namespace

ATTN_OPT_REGISTER_PATTERN(AttentionNode)

}  // namespace attn_opt
