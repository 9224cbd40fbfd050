// Attention of ONNX (opset 23, 24 or 25).
#include "src/emit/operators.h"

namespace attn_opt {
namespace {

constexpr int kOpsetOfLengths = 24;
constexpr int kOpsetOfWindows = 25;

int opset_written(const Site& site) { return site.build.edit().model().edit_opset(); }

/// True if is_causal counts from the past where new keys are not as many as queries.
bool counts_from_past(const WritingPlan& plan, const TargetRules& target) {
  const bool has_several_queries = (plan.q->axes.size(Role::kRow) - 2).never_negative();
  return target.counts_causal_from_past && (has_several_queries || !target.one_query_sees_all);
}

KeySayings onnx_sayings(const WritingPlan& plan, const Site& site) {
  const int opset = opset_written(site);
  const bool has_windows = site.target.has_windows && opset >= kOpsetOfWindows;
  return {.lengths = opset >= kOpsetOfLengths,
          .counts_from_lengths = true,
          .left_window = has_windows,
          .right_window = has_windows,
          .causal_of_other_rows = !plan.has_past || counts_from_past(plan, site.target)};
}

Matched<void> check_onnx(const WritingPlan&, Site& site) {
  if (!site.target.shows_scores && (site.sdpa.scores_output || site.sdpa.probabilities))
    return missed("target.scores", site.match.anchor,
                  std::string(site.target.name) + " has no output of scores or probabilities");
  if (!site.sdpa.nonpad_kv_seqlen || site.says.lengths) return {};
  return missed("emit.opset", site.match.anchor,
                "lengths of sequences (nonpad_kv_seqlen) at opset " + std::to_string(opset_written(site)));
}

Matched<void> check_onnx_masks(const WritingPlan&, const Causality&, Site&) { return {}; }

GraphBuilder::Attributes onnx_attributes(const NodeParts& parts, const Sdpa& sdpa) {
  constexpr size_t kMost = 8;
  const KeyRules& rules = parts.rules;
  GraphBuilder::Attributes attributes;
  attributes.reserve(kMost);
  attributes.emplace_back("scale", parts.operands.scale);
  if (rules.is_causal) attributes.emplace_back("is_causal", 1);
  if (rules.left_window) attributes.emplace_back("left_window_size", *rules.left_window);
  if (rules.right_window) attributes.emplace_back("right_window_size", *rules.right_window);
  if (sdpa.softcap != 0) attributes.emplace_back("softcap", sdpa.softcap);
  if (parts.plan.form == IoForm::k3d) {
    const int64_t query_heads = sdpa.query_heads.value();
    attributes.emplace_back("q_num_heads", query_heads);
    attributes.emplace_back("kv_num_heads", query_heads / parts.plan.kv_group);
  }
  if (sdpa.softmax_precision != onnx::TensorProto::UNDEFINED && sdpa.softmax_precision != sdpa.type)
    attributes.emplace_back("softmax_precision", sdpa.softmax_precision);
  if (parts.further.wants_scores()) attributes.emplace_back("qk_matmul_output_mode", parts.further.qk_matmul_output_mode);
  return attributes;
}

Matched<Node*> write_onnx(const NodeParts& parts, Site& site) {
  return write_node("Attention", inputs_of(parts), onnx_attributes(parts, site.sdpa), parts, site);
}

}  // namespace

const AttentionOperator kOnnxAttention{onnx_sayings, check_onnx, check_onnx_masks, write_onnx};

}  // namespace attn_opt
