// com.microsoft::GroupQueryAttention.
//
//   Q (B, L, H*D), K, V (B, L, Hkv*D), past (B, Hkv, P, D), seqlens_k int32 (B): P + L - 1, total_sequence_length int32: P + L,
//   bias (1 or B, 1 or H, L, P + L)
//
// It is causal. A window holds the query's own key: one more than left_window_size says.
#include "src/emit/contrib_operators.h"

namespace attn_opt {
namespace {

constexpr int64_t kHeadSizeUnit = 8;

KeySayings group_query_sayings(const WritingPlan&, const Site&) { return {.left_window = true}; }

/// ONNX Runtime refuses several queries of several batch elements behind a past.
bool has_past_of_one(const WritingPlan& plan) {
  return plan.q->axes.size(Role::kRow).is(1) || plan.q->axes.size(Role::kBatch).is(1);
}

Matched<void> check_group_query(const WritingPlan& plan, Site& site) {
  const Dim queries = plan.q->axes.size(Role::kRow), keys = plan.k->axes.size(Role::kRow),
            batch = plan.q->axes.size(Role::kBatch);
  const auto size = head_size(*plan.k);
  if (!size || *size % kHeadSizeUnit != 0 || head_size(*plan.v) != size)
    return beyond_contrib(site, "GroupQueryAttention takes heads of a multiple of 8 features, the same of K and V; here " +
                                    plan.k->axes.size(Role::kFeature).str() + " and " +
                                    plan.v->axes.size(Role::kFeature).str());
  if (queries != keys)
    return beyond_contrib(
        site, "GroupQueryAttention takes as many new keys as queries; here " + keys.str() + " and " + queries.str());
  if (plan.has_past && !has_past_of_one(plan))
    return beyond_contrib(site, "GroupQueryAttention takes a past before one query or one batch element; here " +
                                    queries.str() + " queries of " + batch.str());
  if (site.sdpa.nonpad_kv_seqlen)
    return beyond_contrib(site, "GroupQueryAttention writes nothing of use for queries behind a length");
  return check_contrib(plan, site);
}

Matched<void> check_group_query_masks(const WritingPlan&, const Causality& causality, Site& site) {
  if (!causality.rules.is_causal)
    return beyond_contrib(site, "GroupQueryAttention is causal" + (causality.reading.empty() ? "" : "; " + causality.reading));
  return check_empty_rows(causality, site);
}

struct KeyCounts {
  Value* last_keys = nullptr;  ///< seqlens_k
  Value* total = nullptr;
};

Matched<KeyCounts> write_counts(Site& site) {
  Value* keys = site.sizes.sizes({site.scores[3]});
  Value* batch = site.sizes.sizes({site.scores[0]});
  if (!keys || !batch)
    return missed("emit.shape", site.match.anchor,
                  "no value at hand has a size of " + to_string({site.scores[0], site.scores[3]}));
  Value* last = site.build.node("Sub", {keys, site.build.ints({1})});
  return KeyCounts{as_int32(site.build.node("Expand", {last, batch}), site), as_int32(keys, site)};
}

Matched<Node*> write_group_query(const NodeParts& parts, Site& site) {
  const auto make = [](const char* name, auto value) { return GraphBuilder::attribute(name, value); };
  const auto& [q, k, v, scale] = parts.operands;
  const int64_t heads = site.sdpa.query_heads.value();
  GraphBuilder::Attributes attributes{make("num_heads", heads), make("kv_num_heads", heads / parts.plan.kv_group),
                                      make("scale", scale)};
  if (site.sdpa.softcap != 0) attributes.push_back(make("softcap", static_cast<float>(site.sdpa.softcap)));
  if (parts.rules.left_window) attributes.push_back(make("local_window_size", *parts.rules.left_window + 1));
  ATTN_OPT_MATCH(const KeyCounts counts, write_counts(site));
  const std::vector<Value*> given = inputs_of(parts);
  Value* const no_rotary = nullptr;
  return write_node("com.microsoft::GroupQueryAttention",
                    {q.value, k.value, v.value, given[4], given[5], counts.last_keys, counts.total, no_rotary, no_rotary,
                     no_rotary, parts.mask},
                    attributes, parts, site);
}

}  // namespace

const AttentionOperator kGroupQueryAttention{group_query_sayings, check_group_query, check_group_query_masks,
                                             write_group_query};

}  // namespace attn_opt
