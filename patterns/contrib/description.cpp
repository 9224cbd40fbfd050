#include "patterns/contrib/description.h"

#include <algorithm>
#include <cmath>

#include "patterns/operands/operand_walk.h"
#include "patterns/preconditions.h"
#include "patterns/scores/causal_terms.h"
#include "patterns/scores/fills.h"

namespace attn_opt {
namespace {

Matched<double> scale_of(const Node& node, const Dim& features) {
  const double given = node.float_attribute("scale", 0);
  if (given != 0) return given;
  if (!features.is_constant() || features.value() <= 0)
    return missed("contrib.scale", &node, "no scale, and the head size " + features.str() + " is no number");
  return 1 / std::sqrt(static_cast<double>(features.value()));
}

}  // namespace

Matched<AxisMap> merged_axes(const Node& node, const Dim& batch, const Dim& rows, int64_t heads, const Dim& features) {
  const Shape merged{batch, rows, features * Dim(heads)};
  auto axes =
      AxisMap::of({batch, rows, heads, features}, {Role::kBatch, Role::kRow, Role::kHead, Role::kFeature}).regrouped(merged);
  if (!axes) return missed("contrib.shape", &node, "nothing can be said of axes of " + to_string(merged));
  return *std::move(axes);
}

Matched<void> describe_contrib(const ContribOperands& operands, const ContribMasking& masking, Value* attention_bias,
                               const ContribScores& scores, Node& node, MatchContext& context, InnerValues& inner, Sdpa& sdpa) {
  sdpa.type = scores.type;
  sdpa.batch = scores.batch;
  sdpa.query_heads = scores.heads;
  ATTN_OPT_MATCH(sdpa.scale, scale_of(node, operands.q.axes.size(Role::kFeature)));
  ATTN_OPT_MATCH(const AxisMap output,
                 merged_axes(node, scores.batch, scores.queries, scores.heads.value(), operands.v.axes.size(Role::kFeature)));
  sdpa.q = walk_operand(operands.q, context);
  sdpa.k = walk_operand(operands.k, context);
  sdpa.v = walk_operand(operands.v, context);
  ATTN_OPT_DONE(add_mask_terms(masking, scores, node, context.facts, inner, sdpa));
  add_attention_bias(attention_bias, scores, context.facts, sdpa);
  read_causal_terms(sdpa, context.facts);
  sdpa.outputs = walk_output(*node.outputs[0], output, context);
  sdpa.preconditions = preconditions_of(sdpa, context);
  return {};
}

void assume_of_hidden_keys(bool has_all_keys, Sdpa& sdpa) {
  if (!sdpa.is_causal && std::ranges::none_of(sdpa.terms, is_fill)) return;
  assume_scores_finite("keys that a query does not see are not read", sdpa);
  if (!has_all_keys) assume("values-finite", "values behind the length of a batch element are not read", sdpa);
}

}  // namespace attn_opt
