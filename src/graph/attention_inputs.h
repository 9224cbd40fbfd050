// The inputs and outputs of attention operators, by number.
#pragma once

namespace attn_opt {

/// Of ONNX Attention. Those that operators of com.microsoft make from inputs of their own are the same.
enum AttentionInput { kQ, kK, kV, kMask, kPastKey, kPastValue, kNonpad };
enum AttentionOutput { kY, kPresentKey, kPresentValue, kScores };

/// Of com.microsoft::MultiHeadAttention.
enum MultiHeadInput {
  kMultiHeadQuery,
  kMultiHeadKey,
  kMultiHeadValue,
  kMultiHeadBias,
  kMultiHeadMask,
  kMultiHeadAttentionBias,
  kMultiHeadPastKey,
  kMultiHeadPastValue,
  kMultiHeadPastLength,
  kMultiHeadCacheIndirection
};

/// Of com.microsoft::GroupQueryAttention.
enum GroupQueryInput {
  kGroupedQuery,
  kGroupedKey,
  kGroupedValue,
  kGroupedPastKey,
  kGroupedPastValue,
  kGroupedLastKeys,
  kGroupedTotal,
  kGroupedCos,
  kGroupedSin,
  kGroupedPositions,
  kGroupedAttentionBias,
  kGroupedHeadSink,
  kGroupedKeyScale,
  kGroupedValueScale,
  kGroupedQueryNorm,
  kGroupedKeyNorm,
  kGroupedQueryCounts
};

}  // namespace attn_opt
