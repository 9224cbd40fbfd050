#include "src/emit/contrib_operators.h"

#include <limits>
#include <utility>

#include "src/match/facts/empty_rows.h"

namespace attn_opt {
namespace {

/// Y, and 0 where MASK (1 or B, 1, L, S) leaves a row no key: true of (1 or B, L, 1) is laid over (B, L, H*Dv).
Matched<Value*> without_empty_rows(Value* y, Value& mask, Site& site) {
  constexpr int64_t kHeadAxis = 1, kKeyAxis = 3;
  const MaybeShape shape = site.facts.shape(mask);
  if (!shape || shape->size() != 4 || !(*shape)[kHeadAxis].is(1))
    return beyond_contrib(site, "rows without a key are 0, and each head has a mask of its own");
  const DataType type = site.sdpa.type;
  Value* most = site.build.along("ReduceMax", mask, {kKeyAxis}, {GraphBuilder::attribute("keepdims", int64_t{1})});
  Value* is_empty = site.build.node("Equal", {most, site.build.scalar(-std::numeric_limits<double>::infinity(), type)});
  Value* of_rows = site.build.along("Squeeze", *is_empty, {kHeadAxis});
  return site.build.node("Where", {of_rows, site.build.scalar(0, type), y});
}

}  // namespace

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

bool has_empty_rows(const Site& site) { return site.sdpa.guarded && !why_rows_may_be_nan(site.sdpa, site.facts).empty(); }

Matched<Value*> with_empty_rows_zero(Node& node, const NodeParts& parts, Site& site) {
  return parts.mask && has_empty_rows(site) ? without_empty_rows(node.output(0), *parts.mask, site) : node.output(0);
}

std::optional<int64_t> head_size(const OperandView& view) {
  const Dim size = view.axes.size(Role::kFeature);
  return size.is_constant() ? std::optional(size.value()) : std::nullopt;
}

Value* as_int32(Value* value, Site& site) {
  return site.build.node("Cast", {value}, {GraphBuilder::attribute("to", int64_t{onnx::TensorProto::INT32})});
}

}  // namespace attn_opt
