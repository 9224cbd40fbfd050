#include "src/emit/contrib_operators.h"

#include <utility>

#include "src/match/empty_rows.h"

namespace attn_opt {

tl::unexpected<Miss> beyond_contrib(const Site& site, std::string found) {
  return missed("target.contrib", site.match.anchor, std::move(found));
}

Matched<void> check_contrib(const WritingPlan& plan, Site& site) {
  const Sdpa& sdpa = site.sdpa;
  if (sdpa.probabilities || sdpa.scores_output) return beyond_contrib(site, "its scores or probabilities are read");
  const bool is_finer = sdpa.softmax_precision == onnx::TensorProto::DOUBLE;
  if (is_finer) return beyond_contrib(site, "a softmax in " + type_name(sdpa.softmax_precision));
  if (sdpa.right_window) return beyond_contrib(site, "a window behind each query");
  if (sdpa.nonpad_kv_seqlen && (sdpa.is_causal || sdpa.left_window))
    return beyond_contrib(site, "lengths of sequences that queries are counted from");
  const bool as_many = plan.k->axes.size(Role::kRow) == plan.q->axes.size(Role::kRow);
  if (sdpa.is_causal && !as_many) return beyond_contrib(site, "causal, and new keys are not as many as queries");
  return {};
}

Matched<void> check_empty_rows(const Causality& causality, Site& site) {
  if (!site.sdpa.guarded) return {};
  if (causality.rules.lengths) return beyond_contrib(site, "rows without a key are 0, and a length may be 0");
  const std::string why = why_rows_may_be_nan(site.sdpa, site.facts);
  return why.empty() ? Matched<void>{} : beyond_contrib(site, "rows without a key are 0, and " + why);
}

std::optional<int64_t> head_size(const OperandView& view) {
  const Dim size = view.axes.size(Role::kFeature);
  return size.is_constant() ? std::optional(size.value()) : std::nullopt;
}

Value* as_int32(Value* value, Site& site) {
  return site.build.node("Cast", {value}, {GraphBuilder::attribute("to", int64_t{onnx::TensorProto::INT32})});
}

}  // namespace attn_opt
