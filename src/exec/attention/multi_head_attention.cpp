// com.microsoft::MultiHeadAttention.
//
// Q (B, L, H*D); K, V (B, S, H*D), or (B, H, S, D); packed: key (B, S, H, 2, D), or query (B, L, H, 3, D).
#include <initializer_list>

#include "src/exec/attention/contrib_attention.h"
#include "src/exec/attention/padding_mask.h"
#include "src/exec/families.h"
#include "src/exec/wide.h"
#include "src/graph/attention_inputs.h"

namespace attn_opt {
namespace {

constexpr size_t kPackedRank = 5;

/// float, and what is rounded to float or less, is computed in float.
bool computes_in_float(const KernelContext& context) {
  return context.input(kMultiHeadQuery).type() != onnx::TensorProto::DOUBLE;
}

class MultiHeadAttention {
 public:
  explicit MultiHeadAttention(const KernelContext& context)
      : context_(context), heads_(context.attribute_int("num_heads", 0)) {}

  Outputs run() {
    ATTN_OPT_CHECK(check());
    ATTN_OPT_CHECK(read_operands());
    ATTN_OPT_CHECK(add_biases());
    ATTN_OPT_TRY(k_, join_rows(context_, context_.input(kMultiHeadPastKey), k_));
    ATTN_OPT_TRY(v_, join_rows(context_, context_.input(kMultiHeadPastValue), v_));
    ATTN_OPT_CHECK(check_sizes());
    return attend();
  }

 private:
  Status check() const {
    if (heads_ <= 0) return context_.invalid("num_heads is not positive");
    ATTN_OPT_CHECK(refuse_inputs(context_, kMultiHeadPastLength, {"past_sequence_length", "cache_indirection"}));
    if (context_.has(kMultiHeadPastKey) != context_.has(kMultiHeadPastValue)) {
      return context_.invalid("past_key and past_value are not given together");
    }
    for (const size_t i : {kMultiHeadQuery, kMultiHeadKey, kMultiHeadValue, kMultiHeadBias, kMultiHeadAttentionBias,
                           kMultiHeadPastKey, kMultiHeadPastValue}) {
      if (!context_.has(i)) continue;
      ATTN_OPT_CHECK(context_.same_type(context_.input(kMultiHeadQuery), context_.input(i)));
    }
    if (context_.input(kMultiHeadQuery).rank() == kPackedRank)
      return refuse_beside_packed({kMultiHeadKey, kMultiHeadValue, kMultiHeadPastKey, kMultiHeadPastValue});
    if (context_.input(kMultiHeadKey).rank() == kPackedRank)
      return refuse_beside_packed({kMultiHeadValue, kMultiHeadBias, kMultiHeadPastKey, kMultiHeadPastValue});
    return {};
  }

  /// Packed values have no place for INPUTS.
  Status refuse_beside_packed(std::initializer_list<MultiHeadInput> inputs) const {
    for (const MultiHeadInput i : inputs) {
      if (context_.has(i)) return context_.invalid("input " + std::to_string(i) + " is given beside packed keys and values");
    }
    return {};
  }

  Status read_operands() {
    if (context_.input(kMultiHeadQuery).rank() == kPackedRank) {
      ATTN_OPT_TRY(q_, packed(kMultiHeadQuery, 0, 3));
      ATTN_OPT_TRY(k_, packed(kMultiHeadQuery, 1, 3));
      ATTN_OPT_TRY(v_, packed(kMultiHeadQuery, 2, 3));
      return {};
    }
    ATTN_OPT_TRY(q_, merged(kMultiHeadQuery));
    if (context_.input(kMultiHeadKey).rank() == kPackedRank) {
      ATTN_OPT_TRY(k_, packed(kMultiHeadKey, 0, 2));
      ATTN_OPT_TRY(v_, packed(kMultiHeadKey, 1, 2));
    } else if (context_.input(kMultiHeadKey).rank() == 4 && context_.input(kMultiHeadValue).rank() == 4) {
      ATTN_OPT_TRY(k_, in_double(context_, context_.input(kMultiHeadKey)));
      ATTN_OPT_TRY(v_, in_double(context_, context_.input(kMultiHeadValue)));
    } else {
      ATTN_OPT_TRY(k_, merged(kMultiHeadKey));
      ATTN_OPT_TRY(v_, merged(kMultiHeadValue));
    }
    return {};
  }

  /// (B, S, H*D).
  Expected<Tensor> merged(MultiHeadInput i) const {
    const Dims& dims = context_.input(i).dims();
    if (dims.size() != 3 || dims[2] % heads_ != 0) return misfit(i);
    const int64_t size = dims[2] / heads_;
    return split_heads(context_, context_.input(i), {heads_, size, 0, size});
  }

  /// Part PART of (B, S, H, PARTS, D).
  Expected<Tensor> packed(MultiHeadInput i, int64_t part, int64_t parts) const {
    const Dims& dims = context_.input(i).dims();
    if (dims.size() != 5 || dims[2] != heads_ || dims[3] != parts) return misfit(i);
    return split_heads(context_, context_.input(i), {heads_, dims[4], part * dims[4], parts * dims[4]});
  }

  /// Keys and values that are given by heads are those of another projection, which has had its bias.
  Status add_biases() {
    if (!context_.has(kMultiHeadBias)) return {};
    ATTN_OPT_TRY(const std::vector<double> bias, context_.reals(context_.input(kMultiHeadBias)));
    const int64_t q_size = heads_ * q_.dims()[3], v_size = heads_ * v_.dims().back();
    if (static_cast<int64_t>(bias.size()) != 2 * q_size + v_size) return misfit(kMultiHeadBias);
    const bool in_float = computes_in_float(context_);
    add_bias(q_, bias, 0, in_float);
    if (context_.input(kMultiHeadKey).rank() == 4) return {};
    add_bias(k_, bias, q_size, in_float);
    add_bias(v_, bias, 2 * q_size, in_float);
    return {};
  }

  Status check_sizes() const {
    const Dims &q = q_.dims(), &k = k_.dims(), &v = v_.dims();
    const bool fit = k.size() == 4 && v.size() == 4 && k[0] == q[0] && v[0] == q[0] && k[1] == heads_ && v[1] == heads_ &&
                     k[2] == v[2] && k[3] == q[3];
    return fit ? Status{} : misfit(kMultiHeadKey);
  }

  Outputs attend() const {
    const ScoreSizes sizes{q_.dims()[0], q_.dims()[2], k_.dims()[2]};
    ATTN_OPT_TRY(ScoreMasks masks, ScoreMasks::read(context_, kMultiHeadMask, kMultiHeadAttentionBias, heads_, sizes, false));
    if (context_.has(kMultiHeadPastKey)) masks.past = context_.input(kMultiHeadPastKey).dims()[2];
    Tensor scores;
    Tensor* const wanted = context_.wants(3) ? &scores : nullptr;
    ATTN_OPT_TRY(const Tensor y, attend_with_masks(context_, q_, k_, v_, masks, wanted));
    return in_type_of(context_, 0, {y, k_, v_, scores});
  }

  tl::unexpected<Error> misfit(size_t i) const { return misfit_of(context_, i); }

  const KernelContext& context_;
  int64_t heads_;
  Tensor q_, k_, v_;  ///< (B, H, rows, size), in double
};

Outputs multi_head_attention(const KernelContext& context) { return MultiHeadAttention(context).run(); }

}  // namespace

void register_multi_head_attention(KernelRegistry& registry) {
  registry.add("com.microsoft::MultiHeadAttention", 1, 1, multi_head_attention);
}

}  // namespace attn_opt
