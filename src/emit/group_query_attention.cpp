// com.microsoft::GroupQueryAttention.
//
//   Q (B, L, H*D), K, V (B, L, Hkv*D), past (B, Hkv, P, D), seqlens_k int32 (B): P + L - 1, total_sequence_length int32: P + L,
//   bias (1 or B, 1 or H, L, P + L), query_seqlens int32 (B): L
//
// It is causal unless its attribute says 0. A window holds the query's own key: one more than left_window_size says.
#include "src/emit/contrib_operators.h"

namespace attn_opt {
namespace {

constexpr int64_t kHeadSizeUnit = 8;

/// Where it is causal, rows that a bias leaves no key are anything: what finds them must say all by itself.
KeySayings group_query_sayings(const WritingPlan&, const Site& site) {
  const bool says = !has_empty_rows(site);
  return {.left_window = says && site.target.has_windows, .causal = says};
}

/// Else ONNX Runtime wants to be told how many of the queries are none, which it takes where the operator is causal.
bool has_past_of_one(const WritingPlan& plan) {
  return plan.q->axes.size(Role::kRow).is(1) || plan.q->axes.size(Role::kBatch).is(1);
}

Matched<void> check_group_query(const WritingPlan& plan, Site& site) {
  const Dim queries = plan.q->axes.size(Role::kRow), keys = plan.k->axes.size(Role::kRow);
  const auto size = head_size(*plan.k);
  if (!size || *size % kHeadSizeUnit != 0 || head_size(*plan.v) != size)
    return beyond_contrib(site, "GroupQueryAttention takes heads of a multiple of 8 features, the same of K and V; here " +
                                    plan.k->axes.size(Role::kFeature).str() + " and " +
                                    plan.v->axes.size(Role::kFeature).str());
  if (queries != keys)
    return beyond_contrib(
        site, "GroupQueryAttention takes as many new keys as queries; here " + keys.str() + " and " + queries.str());
  const ContribRules& takes = site.target.contrib;
  if (site.sdpa.softcap != 0 && !takes.grouped_softcap)
    return beyond_contrib(site, "a softcap, which GroupQueryAttention has not for this target");
  if (site.sdpa.left_window && !site.target.has_windows)
    return beyond_contrib(site, "a window, which GroupQueryAttention has not for this target");
  if (plan.has_past && !takes.grouped_past)
    return beyond_contrib(site, "a past, which GroupQueryAttention takes in the present's place alone for this target");
  if (site.sdpa.nonpad_kv_seqlen)
    return beyond_contrib(site, "GroupQueryAttention writes nothing of use for queries behind a length");
  return check_contrib(plan, site);
}

Matched<void> check_group_query_masks(const WritingPlan& plan, const Causality& causality, Site& site) {
  const ContribRules& takes = site.target.contrib;
  const bool is_causal = causality.rules.is_causal;
  const std::string reading = causality.reading.empty() ? "" : "; " + causality.reading;
  if (!causality.masks.empty() && !takes.grouped_bias)
    return beyond_contrib(site, "a mask, which GroupQueryAttention has not for this target" + reading);
  if (!is_causal && !takes.not_causal) return beyond_contrib(site, "GroupQueryAttention is causal" + reading);
  if (!is_causal && causality.rules.left_window)
    return beyond_contrib(site, "GroupQueryAttention has a window where it is causal alone" + reading);
  const bool counts_queries = is_causal && takes.query_counts;
  if (plan.has_past && !has_past_of_one(plan) && !counts_queries)
    return beyond_contrib(
        site, "GroupQueryAttention that is not causal takes a past before one query or one batch element" + reading);
  return is_causal ? check_empty_rows(causality, site) : Matched<void>{};
}

struct KeyCounts {
  Value* last_keys = nullptr;  ///< seqlens_k
  Value* total = nullptr;
  Value* queries = nullptr;  ///< query_seqlens; null where the operator does without
};

Matched<KeyCounts> write_counts(const NodeParts& parts, Site& site) {
  Value* keys = site.sizes.sizes({site.scores[3]});
  Value* batch = site.sizes.sizes({site.scores[0]});
  Value* queries = site.sizes.sizes({site.scores[2]});
  if (!keys || !batch || !queries)
    return missed("emit.shape", site.match.anchor, "no value at hand has a size of " + to_string(site.scores));
  const auto of_batch = [&](Value* count) { return as_int32(site.build.node("Expand", {count, batch}), site); };
  Value* last = site.build.node("Sub", {keys, site.build.ints({1})});
  const bool counts_queries = parts.plan.has_past && parts.rules.is_causal && !has_past_of_one(parts.plan);
  return KeyCounts{of_batch(last), as_int32(keys, site), counts_queries ? of_batch(queries) : nullptr};
}

Matched<Node*> write_group_query(const NodeParts& parts, Site& site) {
  const auto make = [](const char* name, auto value) { return GraphBuilder::attribute(name, value); };
  const auto& [q, k, v, scale] = parts.operands;
  const int64_t heads = site.sdpa.query_heads.value();
  GraphBuilder::Attributes attributes{make("num_heads", heads), make("kv_num_heads", heads / parts.plan.kv_group),
                                      make("scale", scale)};
  if (site.sdpa.softcap != 0) attributes.emplace_back(make("softcap", static_cast<float>(site.sdpa.softcap)));
  if (parts.rules.left_window) attributes.emplace_back(make("local_window_size", *parts.rules.left_window + 1));
  if (!parts.rules.is_causal) attributes.emplace_back(make("causal", int64_t{0}));
  ATTN_OPT_MATCH(const KeyCounts counts, write_counts(parts, site));
  const std::vector<Value*> given = inputs_of(parts);
  Value* const none = nullptr;
  return write_node("com.microsoft::GroupQueryAttention",
                    {q.value, k.value, v.value, given[4], given[5], counts.last_keys, counts.total, none, none, none,
                     parts.mask, none, none, none, none, none, counts.queries},
                    attributes, parts, site);
}

}  // namespace

const AttentionOperator kGroupQueryAttention{group_query_sayings, check_group_query, check_group_query_masks, write_group_query,
                                             with_empty_rows_zero};

}  // namespace attn_opt
