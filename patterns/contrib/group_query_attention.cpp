// com.microsoft::GroupQueryAttention.
//
//   before  Q, K, V ────────────┐                            after  Q ─ RotaryEmbedding ──────────────────────┐
//           past ───────────────┤                                   K ─ RotaryEmbedding ┐                     │
//           seqlens_k ──────────┼─ GroupQueryAttention ─ Y          past ───── ScatterND ┴─ present ──────────┼─ Attention(24)
//           ─ Y total_sequence ─────┤                     └─ present    V, past ─ ScatterND ─── present ──────────┤ cos, sin
//           caches ────┘                                   key places, seqlens_k ─ Less, And ── mask ┘
//
// Each batch element has a length of its own: its new keys lie behind those that it has, and what lies behind them is masked.
#include <cmath>
#include <limits>
#include <optional>

#include "attn_opt/canonical.h"
#include "patterns/contrib/description.h"
#include "patterns/contrib/operator.h"
#include "patterns/contrib/ranks.h"
#include "patterns/operands/operand_walk.h"
#include "patterns/preconditions.h"
#include "patterns/scores/sinks.h"
#include "src/graph/attention_inputs.h"
#include "src/graph/operator_name.h"

namespace attn_opt {
namespace {

constexpr InputRank kGroupQueryRanks[] = {
    {kGroupedQuery, "query", 3, true},
    {kGroupedKey, "key", 3},
    {kGroupedValue, "value", 3},
    {kGroupedPastKey, "past_key", 4},
    {kGroupedPastValue, "past_value", 4},
    {kGroupedHeadSink, "head_sink", 1},
    {kGroupedCos, "cos_cache", 2},
    {kGroupedSin, "sin_cache", 2},
    {kGroupedPositions, "position_ids", 2},
    {kGroupedAttentionBias, "attention_bias", 4},
};

constexpr DataType kInt64 = onnx::TensorProto::INT64;
/// More are no attributes of a real model, and their sums no int64.
constexpr int64_t kMostHeads = int64_t{1} << 32;

class GroupQueryAttentionReader {
 public:
  static constexpr std::string_view kName = "contrib_group_query_attention", kOperator = "GroupQueryAttention";
  static constexpr std::string_view kSummary = "com.microsoft::GroupQueryAttention";

  GroupQueryAttentionReader(Node& node, MatchContext& context)
      : node_(node),
        context_(context),
        facts_(context.facts),
        inner_(node, context),
        heads_(node.int_attribute("num_heads", 0)),
        kv_heads_(node.int_attribute("kv_num_heads", 0)),
        window_(node.int_attribute("local_window_size", -1)) {}

  Matched<Match> read() {
    ATTN_OPT_DONE(refuse());
    ATTN_OPT_DONE(check_ranks(node_, kGroupQueryRanks, facts_));
    ATTN_OPT_DONE(check_lengths());
    ATTN_OPT_DONE(read_sizes());
    Match match;
    match.anchor = match.insert_before = &node_;
    match.peeled = {operator_name(node_)};
    match.kv_group = heads_ / kv_heads_;
    match.has_past = node_.input(kGroupedPastKey) != nullptr;
    ATTN_OPT_DONE(describe(match));
    return match;
  }

 private:
  tl::unexpected<Miss> miss(const char* id, std::string found) const { return missed(id, &node_, std::move(found)); }

  Matched<void> refuse() const {
    if (!node_.output(kY)) return missed(std::string(kNotAttention), &node_, "");
    if (node_.input(kGroupedKeyScale) || node_.input(kGroupedValueScale) || is_quantized("k_quant_type") ||
        is_quantized("v_quant_type"))
      return miss("group-query-attention.quantized-cache", "the cache is quantized");
    if (node_.int_attribute("sliding_window_cache", 0) != 0)
      return miss("group-query-attention.window-cache", "the cache holds a window only");
    if (node_.input(kGroupedQueryNorm) || node_.input(kGroupedKeyNorm))
      return miss("group-query-attention.normalized", "Q and K are normalized inside");
    if (const Value* scores = node_.output(kScores); scores && !scores->unused())
      return miss("group-query-attention.scores-output", "output_qk is read");
    if (heads_ <= 0 || heads_ > kMostHeads || kv_heads_ <= 0 || heads_ % kv_heads_ != 0 || window_ == 0 || window_ < -1)
      return miss("group-query-attention.attributes", "num_heads, kv_num_heads or local_window_size");
    const bool given = node_.input(kGroupedLastKeys) && node_.input(kGroupedTotal);
    return given && (node_.input(kGroupedKey) == nullptr) == (node_.input(kGroupedValue) == nullptr) &&
                   (node_.input(kGroupedPastKey) == nullptr) == (node_.input(kGroupedPastValue) == nullptr)
               ? Matched<void>{}
               : miss("group-query-attention.inputs", "seqlens_k, or one of key and value or of their past");
  }

  /// True if COUNTS, integers by batch element, are all known to be NUMBER.
  bool are_all(Value& counts, const Dim& number) const {
    const Value* one = &canonical(counts, facts_);
    while (one->producer && (one->producer->is("Expand") || one->producer->is("Cast")))
      one = &canonical(*one->producer->inputs[0], facts_);
    const IntegerData* known = facts_.integers(*one);
    return known && std::ranges::all_of(known->values, [&](const Dim& count) { return count == number; });
  }

  Dim queries() const { return facts_.shape(*node_.inputs[kGroupedQuery]).known()[1]; }

  /// True if there are no keys but the new ones, and none of them is padding.
  bool has_all_keys() const { return !node_.input(kGroupedPastKey) && are_all(*node_.inputs[kGroupedLastKeys], queries() - 1); }

  /// seqlens_k (B), or (B, 1) as ONNX Runtime takes it too.
  Matched<void> check_lengths() const {
    if (Value* counts = node_.input(kGroupedQueryCounts); counts && !are_all(*counts, queries()))
      return miss("group-query-attention.query-counts", "'" + counts->name + "' may count fewer queries than there are");
    const Value& lengths = *node_.inputs[kGroupedLastKeys];
    const MaybeShape shape = facts_.shape(lengths);
    if (shape.has_rank(1) || (shape.has_rank(2) && (*shape)[1].is(1))) return {};
    return missed(
        "contrib.rank", &node_,
        "seqlens_k '" + lengths.name + "' is " + (shape ? to_string(*shape) : "of no known rank") + ", not of rank 1");
  }

  bool is_quantized(const char* name) const {
    const auto* type = node_.attribute(name);
    return type && type->s() != "NONE" && !type->s().empty();
  }

  Matched<void> read_sizes() {
    const Shape& query = facts_.shape(*node_.inputs[kGroupedQuery]).known();
    const int64_t all = node_.input(kGroupedKey) ? heads_ : heads_ + 2 * kv_heads_;
    const auto size = exact_quotient(query[2], Dim(all));
    if (!size || !size->is_constant() || size->value() <= 0)
      return missed("contrib.shape", &node_, "the head size of a query " + to_string(query) + " is no number");
    size_ = size->value();
    scores_.type = facts_.type(*node_.inputs[kGroupedQuery]);
    scores_.batch = query[0];
    scores_.heads = heads_;
    scores_.queries = scores_.new_keys = query[1];
    scores_.batch_size = inner_.size(*node_.inputs[kGroupedQuery], 0);
    scores_.query_count = inner_.size(*node_.inputs[kGroupedQuery], 1);
    if (!node_.input(kGroupedPastKey)) return {};
    scores_.past = facts_.shape(*node_.inputs[kGroupedPastKey]).known()[2];
    if (facts_.type(*node_.inputs[kGroupedPastKey]) != scores_.type)
      return miss("group-query-attention.quantized-cache", "the cache is of another type");
    return {};
  }

  Matched<void> describe(Match& match) {
    Sdpa& sdpa = match.sdpa;
    sdpa.type = scores_.type;
    sdpa.batch = scores_.batch;
    sdpa.query_heads = heads_;
    const double scale = node_.float_attribute("scale", 0);
    sdpa.scale = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(size_));
    sdpa.softcap = std::max(0.0f, static_cast<float>(node_.float_attribute("softcap", 0)));
    // A query without keys gives 0; one whose keys a bias drops gives NaN, which Attention does not.
    sdpa.guarded = node_.input(kGroupedAttentionBias) == nullptr;
    const auto [q, k, v] = operands();
    read_lengths();
    Value* q_turned = q;
    Value* k_turned = k;
    if (node_.int_attribute("do_rotary", 0) != 0) {
      if (!node_.input(kGroupedCos) || !node_.input(kGroupedSin))
        return miss("group-query-attention.inputs", "do_rotary without its caches");
      q_turned = rotated(q);
      k_turned = rotated(k);
    }
    const auto [key, value] = join_caches(k_turned, v, match);
    sdpa.q = walk_operand({q_turned, by_heads(*q_turned)}, context_);
    sdpa.k = walk_operand({key, by_heads(*key)}, context_);
    sdpa.v = walk_operand({value, by_heads(*value)}, context_);
    add_mask(*key, sdpa);
    ATTN_OPT_MATCH(const auto sinks, sinks_of_heads());
    if (sinks) ATTN_OPT_DONE(add_sinks(*sinks, sdpa, node_, context_));
    ATTN_OPT_MATCH(const AxisMap output, merged_axes(node_, scores_.batch, scores_.queries, heads_, size_));
    sdpa.outputs = walk_output(*node_.outputs[kY], output, context_);
    if (!sdpa.guarded) sdpa.preconditions = preconditions_of(sdpa, context_);
    if (sinks) assume_of_sinks(*sinks, sdpa, context_);
    assume_of_hidden_keys(has_all_keys(), sdpa);
    enter_legal(sdpa);
    return {};
  }

  AxisMap by_heads(const Value& value) const {
    return AxisMap::of(facts_.shape(value).known(), {Role::kBatch, Role::kHead, Role::kRow, Role::kFeature});
  }

  /// Q, K and V as (B, heads, S, D).
  std::tuple<Value*, Value*, Value*> operands() {
    if (node_.input(kGroupedKey))
      return {split_heads(node_.inputs[kGroupedQuery], heads_), split_heads(node_.inputs[kGroupedKey], kv_heads_),
              split_heads(node_.inputs[kGroupedValue], kv_heads_)};
    const auto parts = inner_.split(node_.inputs[kGroupedQuery], {heads_ * size_, kv_heads_ * size_, kv_heads_ * size_}, 2);
    return {split_heads(parts[0], heads_), split_heads(parts[1], kv_heads_), split_heads(parts[2], kv_heads_)};
  }

  Value* split_heads(Value* value, int64_t heads) {
    return inner_.transposed(inner_.reshaped(value, {0, 0, heads, size_}), {0, 2, 1, 3});
  }

  Value* op(const char* name, const std::vector<Value*>& inputs) { return inner_.build().node(name, inputs); }

  /// Lengths, int64 (B, 1): keys that there were before, and with the new ones. A prompt starts anew.
  void read_lengths() {
    Value* last = inner_.int64(*node_.inputs[kGroupedLastKeys]);
    if (facts_.shape(*last).has_rank(1)) last = inner_.unsqueezed(last, {1});
    length_ = inner_.sum(last, inner_.number(1, kInt64));
    total_ = inner_.reshaped(inner_.int64(*node_.inputs[kGroupedTotal]), {1});
    is_prompt_ = node_.input(kGroupedQueryCounts) ? inner_.number(0, onnx::TensorProto::BOOL)
                                                  : op("Equal", {total_, scores_.query_count});
    if (!node_.input(kGroupedPastKey)) return;
    Value* before = op("Sub", {length_, scores_.query_count});
    before_ = op("Where", {is_prompt_, inner_.number(0, kInt64), before});
  }

  /// Places of the new rows, int64 (B, S) or (1, S).
  Value* places() {
    Value* rows = inner_.unsqueezed(inner_.positions(scores_.query_count), {0});
    return before_ ? inner_.sum(before_, rows) : rows;
  }

  /// Of a prompt only the first of given positions counts.
  Value* rotary_positions() {
    Value* positions = places();
    if (Value* given = node_.input(kGroupedPositions)) {
      Value* first = inner_.slice(inner_.reshaped(given, {-1}), inner_.build().ints({0}), inner_.build().ints({1}), 0);
      positions = op("Where", {is_prompt_, inner_.sum(first, inner_.positions(scores_.query_count)), given});
    }
    return op("Expand", {positions, inner_.concat({scores_.batch_size, scores_.query_count}, 0)});
  }

  Value* rotated(Value* heads) {
    const MaybeShape cache = facts_.shape(*node_.inputs[kGroupedCos]);
    GraphBuilder::Attributes attributes{
        GraphBuilder::attribute("interleaved", node_.int_attribute("rotary_interleaved", 0) != 0 ? int64_t{1} : 0)};
    if (cache && cache->size() == 2 && (*cache)[1].is_constant() && (*cache)[1].value() * 2 != size_)
      attributes.emplace_back(GraphBuilder::attribute("rotary_embedding_dim", (*cache)[1].value() * 2));
    return inner_.build().node("RotaryEmbedding",
                               {heads, node_.inputs[kGroupedCos], node_.inputs[kGroupedSin], rotary_positions()}, attributes);
  }

  /// K and V with the past in front of them, as the present outputs are.
  std::pair<Value*, Value*> join_caches(Value* key, Value* value, Match& match) {
    Value* k = node_.input(kGroupedPastKey) ? present(node_.inputs[kGroupedPastKey], key) : key;
    Value* v = node_.input(kGroupedPastKey) ? present(node_.inputs[kGroupedPastValue], value) : value;
    for (auto [output, made] : {std::pair{kPresentKey, k}, std::pair{kPresentValue, v}})
      if (Value* existing = node_.output(output); existing && !existing->unused())
        match.copies.push_back({existing, node_.input(kGroupedPastKey) ? made : op("Identity", {made})});
    return {k, v};
  }

  /// PAST, without what lies behind the keys of each batch element, lengthened to all keys, and FRESH at its places.
  Value* present(Value* past, Value* fresh) {
    Value* held = inner_.size(*past, 2);
    Value* rows = op("Max", {held, total_});
    Value* row = inner_.positions(rows);
    Value* is_kept = inner_.unsqueezed(op("Less", {row, before_}), {1, 3});
    Value* zero = inner_.build().scalar(0, scores_.type);
    Value* cleared = op("Where", {is_kept, lengthened(past, op("Sub", {rows, held})), zero});
    Value* indices = row_indices();
    return op("ScatterND", {cleared, indices, fresh});
  }

  /// PAST with EXTRA rows of zeros behind.
  Value* lengthened(Value* past, Value* extra) {
    Value* none = inner_.build().ints({0, 0, 0, 0, 0, 0});
    return op("Pad", {past, inner_.concat({none, extra, inner_.build().ints({0})}, 0)});
  }

  /// Batch, head and place of each new row: int64 (B, Hkv, S, 3).
  Value* row_indices() {
    Value* sizes =
        inner_.concat({scores_.batch_size, inner_.build().ints({kv_heads_}), scores_.query_count, inner_.build().ints({1})}, 0);
    Value* batch = inner_.unsqueezed(inner_.positions(scores_.batch_size), {1, 2, 3});
    Value* head = inner_.unsqueezed(inner_.positions(inner_.build().ints({kv_heads_})), {0, 2, 3});
    std::vector<Value*> columns;
    for (Value* column : {batch, head, inner_.unsqueezed(places(), {1, 3})}) columns.push_back(op("Expand", {column, sizes}));
    return inner_.concat(columns, 3);
  }

  /// Which of the rows of KEY each query sees: (B, 1, S, rows).
  void add_mask(Value& key, Sdpa& sdpa) {
    const Dim rows = facts_.shape(key).known()[2];
    const Shape frame{scores_.batch, scores_.heads, scores_.queries, rows};
    if (Value* bias = node_.input(kGroupedAttentionBias)) {
      ScoreTerm term;
      term.value = node_.input(kGroupedPastKey) ? over_rows(bias, key) : bias;
      term.frame = frame;
      sdpa.terms.push_back(term);
    }
    const bool is_causal = node_.int_attribute("causal", 1) != 0;
    if (window_ <= 0 && has_all_keys()) {
      sdpa.is_causal = is_causal;
      return;
    }
    Value* row = inner_.positions(inner_.size(key, 2));
    Value* seen = op("Less", {row, inner_.unsqueezed(length_, {1, 2})});
    Value* place = inner_.unsqueezed(places(), {1, 3});
    if (is_causal) seen = op("And", {seen, op("LessOrEqual", {row, place})});
    if (window_ > 0) {
      Value* nearest_hidden = op("Sub", {place, inner_.number(window_, kInt64)});
      seen = op("And", {seen, op("Greater", {row, nearest_hidden})});
    }
    ScoreTerm term;
    term.kind = ScoreTerm::Kind::kKeep;
    term.value = seen;
    term.fill = -std::numeric_limits<double>::infinity();
    term.frame = frame;
    sdpa.terms.push_back(term);
  }

  /// One score more for each head, which head_sink gives, or is 0 for smooth_softmax.
  Matched<std::optional<JoinedSinks>> sinks_of_heads() {
    Value* sinks = node_.input(kGroupedHeadSink);
    if (!sinks && node_.int_attribute("smooth_softmax", 0) != 1) return std::optional<JoinedSinks>();
    const SinkColumns column{1, false};
    const Shape frame{scores_.batch, heads_, scores_.queries, 1};
    if (!sinks) return JoinedSinks{inner_.reshaped(inner_.build().scalar(0, scores_.type), {1, 1, 1, 1}), column, 1, 0, frame};
    const Dim heads = facts_.shape(*sinks).known()[0];
    if (heads.is_constant() && !heads.is(heads_))
      return missed("contrib.shape", &node_, "head_sink of " + heads.str() + " heads");
    return JoinedSinks{inner_.reshaped(sinks, {1, heads_, 1, 1}), column, 1, 0, frame};
  }

  /// BIAS, of as many keys as there are at most, with zeros for the further rows of KEY.
  Value* over_rows(Value* bias, Value& key) {
    Value* extra = op("Sub", {inner_.size(key, 2), inner_.size(*bias, 3)});
    Value* none = inner_.build().ints({0, 0, 0, 0, 0, 0, 0});
    return op("Pad", {bias, inner_.concat({none, extra}, 0)});
  }

  /// Of KEYS that the caches have room for, those that the bias has columns for.
  Dim biased_keys(const Dim& keys) const {
    const Value* bias = node_.input(kGroupedAttentionBias);
    const MaybeShape shape = bias ? facts_.shape(*bias) : nullptr;
    return shape && shape->size() == 4 ? minimum((*shape)[3], keys) : keys;
  }

  void enter_legal(Sdpa& sdpa) const {
    const Dim keys = scores_.keys(), total_keys = biased_keys(keys);
    enter_legal_integers(*node_.inputs[kGroupedTotal], total_keys, total_keys, facts_, sdpa);
    // Behind a past all queries have their keys; a prompt may be shorter than its padding.
    const Dim least = (node_.input(kGroupedQueryCounts) ? Dim(1) : minimum(scores_.past, 1)) * (scores_.queries - 1);
    enter_legal_integers(*node_.inputs[kGroupedLastKeys], least, total_keys - 1, facts_, sdpa);
    if (const IntegerData* total = facts_.integers(*node_.inputs[kGroupedTotal]); total && total->values.size() == 1)
      sdpa.legal_sizes.emplace_back(total->values[0], keys);
    if (const Value* bias = node_.input(kGroupedAttentionBias)) enter_legal_bias(*bias, scores_, facts_, sdpa);
    if (const MaybeShape cache = node_.input(kGroupedCos) ? facts_.shape(*node_.inputs[kGroupedCos]) : nullptr;
        cache.has_rank(2) && !(*cache)[0].is_constant())
      sdpa.legal_sizes.emplace_back((*cache)[0], keys);
    if (Value* sinks = node_.input(kGroupedHeadSink)) sdpa.legal_sizes.emplace_back(facts_.shape(*sinks).known()[0], heads_);
    if (Value* positions = node_.input(kGroupedPositions)) {
      enter_legal_integers(*positions, 0, 1, facts_, sdpa);
      // More of them are legal too.
      if (const MaybeShape shape = facts_.shape(*positions); shape.has_rank(2))
        sdpa.legal_sizes.emplace_back((*shape)[1], scores_.queries);
    }
  }

  Node& node_;
  MatchContext& context_;
  Facts& facts_;
  InnerValues inner_;
  int64_t heads_, kv_heads_, window_;
  int64_t size_ = 0;  ///< of a head
  ContribScores scores_;
  Value* length_ = nullptr;     ///< int64 (B, 1): keys of each batch element
  Value* before_ = nullptr;     ///< int64 (B, 1): those before the new ones; null: none
  Value* total_ = nullptr;      ///< int64 [1]
  Value* is_prompt_ = nullptr;  ///< bool [1]
};

using ContribGroupQueryAttention = ContribOperator<GroupQueryAttentionReader>;

}  // namespace

ATTN_OPT_REGISTER_PATTERN(ContribGroupQueryAttention)

}  // namespace attn_opt
