// Integer masks of com.microsoft::MultiHeadAttention and Attention: which keys are padding, said in several ways.
#pragma once

#include <vector>

#include "src/exec/attention/contrib_attention.h"

namespace attn_opt {

class PaddingMask {
 public:
  enum class Kind {
    kNone,
    kKeyLengths,     ///< (B) or (3B + 2), whose first B count: keys from there on are padding
    kKeyEndsStarts,  ///< (2B): ends, exclusive, and then starts
    kKeys,           ///< (B, S): above 0 where a key is none
    kScores,         ///< (B, L, S): the same for each query
  };

  /// Input I, which may be omitted. ENDS_STARTS: the operator knows kKeyEndsStarts, and masks (B or 1, 1) that say nothing.
  static Expected<PaddingMask> read(const KernelContext& context, size_t i, const ScoreSizes& sizes, bool ends_starts);

  bool is_padding(int64_t batch, int64_t query, int64_t key) const;

 private:
  Kind kind_ = Kind::kNone;
  ScoreSizes sizes_;
  std::vector<int64_t> numbers_;
};

/// What MultiHeadAttention and Attention add to their scores.
struct ScoreMasks {
  PaddingMask padding;
  ScoreBias bias;
  double fill = -10000;  ///< what padding adds
  bool is_causal = false;
  bool in_float = true;  ///< the operator computes in float, and not in double
  int64_t past = 0;      ///< keys before those that come with the queries

  /// Inputs MASK and BIAS and attributes of the node.
  static Expected<ScoreMasks> read(const KernelContext& context, size_t mask, size_t bias, int64_t heads,
                                   const ScoreSizes& sizes, bool ends_starts);
};

/// As attend(), with scale and masks; Q, K and V as there.
Expected<Tensor> attend_with_masks(const KernelContext& context, const Tensor& q, const Tensor& k, const Tensor& v,
                                   const ScoreMasks& masks, Tensor* scores = nullptr);

/// OUTPUTS in the type of the node's input number TYPED, those that it does not ask for without value.
Outputs in_type_of(const KernelContext& context, size_t typed, std::vector<Tensor> outputs);

}  // namespace attn_opt
