// com.microsoft::GroupQueryAttention.
//
// Query (B, S, H*D) and key, value (B, S, Hkv*D), or all in the query (B, S, (H + 2 Hkv)*D). Each batch element b has a length
// of its own, seqlens_k[b] + 1 keys, the new ones last; a prompt (as many queries as total_sequence_length) is padded on the
// right to the longest. With query_seqlens (B), each has so many of the new keys and queries, the rest are padding, and nothing
// else says what a prompt is. past (B, Hkv, P, D) holds the keys before the new ones first; present, of max(P, total) rows, has
// the new ones behind them and zeros after that.
#include <algorithm>
#include <cmath>

#include "src/exec/attention/contrib_attention.h"
#include "src/exec/attention/padding_mask.h"
#include "src/exec/attention/rotary.h"
#include "src/exec/families.h"
#include "src/exec/wide.h"
#include "src/graph/attention_inputs.h"

namespace attn_opt {
namespace {

class GroupQueryAttention {
 public:
  explicit GroupQueryAttention(const KernelContext& context)
      : context_(context),
        heads_(context.attribute_int("num_heads", 0)),
        kv_heads_(context.attribute_int("kv_num_heads", 0)),
        window_(context.attribute_int("local_window_size", -1)) {}

  Outputs run() {
    ATTN_OPT_CHECK(check_attributes());
    ATTN_OPT_CHECK(check_types());
    ATTN_OPT_CHECK(read_operands());
    ATTN_OPT_CHECK(read_lengths());
    ATTN_OPT_CHECK(rotate());
    ATTN_OPT_TRY(k_, present(kGroupedPastKey, k_));
    ATTN_OPT_TRY(v_, present(kGroupedPastValue, v_));
    ATTN_OPT_TRY(Tensor y, attend_within_lengths());
    return in_type_of(context_, 0, {std::move(y), k_, v_});
  }

 private:
  Status check_attributes() const {
    constexpr int64_t kMostHeads = int64_t{1} << 32;
    if (kv_heads_ <= 0 || heads_ <= 0 || heads_ > kMostHeads || heads_ % kv_heads_ != 0) {
      return context_.invalid("num_heads is no multiple of kv_num_heads");
    }
    for (const char* name : {"qk_output", "sliding_window_cache"}) {
      if (context_.attribute_int(name, 0) != 0) return context_.unsupported(name);
    }
    for (const char* name : {"k_quant_type", "v_quant_type"}) {
      if (context_.attribute_string(name, "NONE") != "NONE") return context_.unsupported(name);
    }
    if (window_ != -1 && window_ <= 0) return context_.unsupported("a local_window_size without keys");
    return refuse_inputs(context_, kGroupedKeyScale, {"k_scale", "v_scale", "q_norm_weight", "k_norm_weight"});
  }

  Status check_types() const {
    for (const size_t i : {kGroupedQuery, kGroupedKey, kGroupedValue, kGroupedPastKey, kGroupedPastValue, kGroupedCos,
                           kGroupedSin, kGroupedAttentionBias, kGroupedHeadSink}) {
      if (!context_.has(i)) continue;
      ATTN_OPT_CHECK(context_.same_type(context_.input(kGroupedQuery), context_.input(i)));
    }
    if (context_.has(kGroupedKey) != context_.has(kGroupedValue) ||
        context_.has(kGroupedPastKey) != context_.has(kGroupedPastValue)) {
      return context_.invalid("one of key and value, or of their past, is given without the other");
    }
    return {};
  }

  Status read_operands() {
    const Tensor& query = context_.input(kGroupedQuery);
    if (query.rank() != 3) return misfit(kGroupedQuery);
    if (context_.has(kGroupedKey)) {
      ATTN_OPT_TRY(q_, columns(kGroupedQuery, heads_, heads_, 0));
      ATTN_OPT_TRY(k_, columns(kGroupedKey, kv_heads_, kv_heads_, 0));
      ATTN_OPT_TRY(v_, columns(kGroupedValue, kv_heads_, kv_heads_, 0));
    } else {
      const int64_t all = heads_ + 2 * kv_heads_;
      ATTN_OPT_TRY(q_, columns(kGroupedQuery, all, heads_, 0));
      ATTN_OPT_TRY(k_, columns(kGroupedQuery, all, kv_heads_, heads_));
      ATTN_OPT_TRY(v_, columns(kGroupedQuery, all, kv_heads_, heads_ + kv_heads_));
    }
    const Dims &q = q_.dims(), &k = k_.dims();
    if (k[0] != q[0] || k[2] != q[2] || k[3] != q[3]) return misfit(kGroupedKey);
    return k == v_.dims() ? Status{} : misfit(kGroupedValue);
  }

  /// Heads [FIRST, FIRST + COUNT) of input I, which has ALL.
  Expected<Tensor> columns(GroupQueryInput i, int64_t all, int64_t count, int64_t first) const {
    const Tensor& tensor = context_.input(i);
    if (tensor.rank() != 3 || tensor.dims()[2] % all != 0) return misfit(i);
    const int64_t size = tensor.dims()[2] / all;
    return split_heads(context_, tensor, {count, size, first * size, size});
  }

  Status read_lengths() {
    const int64_t batch = q_.dims()[0], queries = q_.dims()[2];
    ATTN_OPT_TRY(const int64_t total, context_.integer(kGroupedTotal, 0));
    ATTN_OPT_TRY(lengths_, context_.integers(context_.input(kGroupedLastKeys)));
    if (static_cast<int64_t>(lengths_.size()) != batch) return misfit(kGroupedLastKeys);
    query_counts_.assign(static_cast<size_t>(batch), queries);
    if (context_.has(kGroupedQueryCounts)) {
      ATTN_OPT_TRY(query_counts_, context_.integers(context_.input(kGroupedQueryCounts)));
      if (static_cast<int64_t>(query_counts_.size()) != batch) return misfit(kGroupedQueryCounts);
    }
    is_prompt_ = queries == total && !context_.has(kGroupedQueryCounts);
    total_ = total;
    const int64_t rows = context_.input(kGroupedPastKey).rank() == 4 ? context_.input(kGroupedPastKey).dims()[2] : 0;
    for (size_t b = 0; b < lengths_.size(); ++b) {
      const int64_t length = ++lengths_[b], before = keys_before(static_cast<int64_t>(b));
      if (length < 1 || length > total || before < 0 || before > rows || query_counts_[b] < 0 || query_counts_[b] > queries) {
        return context_.invalid(std::to_string(length) + " keys of " + std::to_string(total) + " behind a past of " +
                                std::to_string(rows));
      }
    }
    return {};
  }

  int64_t query_count(int64_t batch) const { return query_counts_[static_cast<size_t>(batch)]; }
  int64_t keys_before(int64_t batch) const {
    return is_prompt_ ? 0 : lengths_[static_cast<size_t>(batch)] - query_count(batch);
  }

  Status rotate() {
    if (context_.attribute_int("do_rotary", 0) == 0) return {};
    ATTN_OPT_TRY(const RotaryCaches caches, RotaryCaches::read(context_, kGroupedCos, kGroupedSin));
    ATTN_OPT_TRY(const std::vector<int64_t> positions, positions_of_rows());
    const bool interleaved = context_.attribute_int("rotary_interleaved", 0) != 0;
    ATTN_OPT_CHECK(caches.rotate(context_, q_, positions, interleaved));
    return caches.rotate(context_, k_, positions, interleaved);
  }

  /// Of a prompt only the first of given positions counts.
  Expected<std::vector<int64_t>> positions_of_rows() const {
    const int64_t batch = q_.dims()[0], rows = q_.dims()[2];
    std::vector<int64_t> given;
    if (context_.has(kGroupedPositions)) {
      ATTN_OPT_TRY(given, context_.integers(context_.input(kGroupedPositions)));
      if (context_.input(kGroupedPositions).dims() != Dims{batch, rows}) return misfit(kGroupedPositions);
      if (!is_prompt_) return given;
    }
    std::vector<int64_t> positions;
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t row = 0; row < rows; ++row) positions.push_back((given.empty() ? keys_before(b) : given[0]) + row);
    return positions;
  }

  /// The cache with the new rows FRESH (B, Hkv, S, D).
  Expected<Tensor> present(GroupQueryInput past, const Tensor& fresh) const {
    const Dims& now = fresh.dims();
    Tensor before;
    if (context_.has(past)) {
      const Dims& dims = context_.input(past).dims();
      if (dims.size() != 4 || dims[0] != now[0] || dims[1] != now[1] || dims[3] != now[3]) return misfit(past);
      ATTN_OPT_TRY(before, in_double(context_, context_.input(past)));
    }
    const int64_t held = before.has_value() ? before.dims()[2] : 0, rows = std::max(held, total_), size = now[3];
    ATTN_OPT_TRY(Tensor cache, context_.allocate(onnx::TensorProto::DOUBLE, {now[0], now[1], rows, size}));
    for (int64_t head = 0; head < now[0] * now[1]; ++head) {
      const int64_t kept = keys_before(head / now[1]);
      double* to = cache.mutable_data<double>().data() + head * rows * size;
      if (kept > 0) to = std::copy_n(before.data<double>().data() + head * held * size, kept * size, to);
      std::copy_n(fresh.data<double>().data() + head * now[2] * size, query_count(head / now[1]) * size, to);
    }
    return cache;
  }

  /// Scores beside those of the keys: 0 for smooth_softmax, unless each head has its own.
  Expected<std::vector<double>> sinks_of_heads() const {
    if (!context_.has(kGroupedHeadSink)) {
      const bool is_smooth = context_.attribute_int("smooth_softmax", 0) == 1;
      return is_smooth ? std::vector<double>(static_cast<size_t>(heads_)) : std::vector<double>{};
    }
    if (context_.input(kGroupedHeadSink).dims() != Dims{heads_}) return misfit(kGroupedHeadSink);
    return context_.reals(context_.input(kGroupedHeadSink));
  }

  Expected<Tensor> attend_within_lengths() const {
    const ScoreSizes sizes{q_.dims()[0], q_.dims()[2], total_};
    ATTN_OPT_TRY(const ScoreBias bias, ScoreBias::read(context_, kGroupedAttentionBias, heads_, sizes));
    const auto cap = static_cast<double>(context_.attribute_float("softcap", 0));
    const bool is_causal = context_.attribute_int("causal", 1) != 0;
    const bool in_float = context_.input(kGroupedQuery).type() != onnx::TensorProto::DOUBLE;
    ATTN_OPT_TRY(std::vector<double> sinks, sinks_of_heads());
    AttentionScores rule{score_scale(context_, q_.dims()[3]), in_float, std::move(sinks), {}};
    rule.finish = [&](const Query& query, std::span<double> scores) {
      if (query.index >= query_count(query.batch)) return KeysSeen{};
      const int64_t length = lengths_[static_cast<size_t>(query.batch)];
      const int64_t after_own = keys_before(query.batch) + query.index + 1;
      const KeysSeen range{window_ > 0 ? std::max<int64_t>(0, after_own - window_) : 0,
                           is_causal ? std::min(after_own, length) : length};
      for (int64_t key = range.begin; key < range.end; ++key) {
        double& score = scores[static_cast<size_t>(key)];
        if (cap > 0) score = rule.rounded(cap * std::tanh(score / cap));
        score = rule.rounded(score + bias.of(query, key));
      }
      return range.begin < range.end ? range : KeysSeen{};
    };
    return attend(context_, q_, k_, v_, rule);
  }

  tl::unexpected<Error> misfit(size_t i) const { return misfit_of(context_, i); }

  const KernelContext& context_;
  int64_t heads_, kv_heads_, window_;
  Tensor q_, k_, v_;                   ///< (B, H, rows, size), in double
  std::vector<int64_t> lengths_;       ///< keys of each batch element, the new ones among them
  std::vector<int64_t> query_counts_;  ///< of each batch element
  int64_t total_ = 0;
  bool is_prompt_ = false;
};

Outputs group_query_attention(const KernelContext& context) { return GroupQueryAttention(context).run(); }

}  // namespace

void register_group_query_attention(KernelRegistry& registry) {
  registry.add("com.microsoft::GroupQueryAttention", 1, 1, group_query_attention);
}

}  // namespace attn_opt
