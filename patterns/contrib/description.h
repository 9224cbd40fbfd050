// What com.microsoft::MultiHeadAttention and Attention have in common once there are Q, K and V, as an Sdpa.
#pragma once

#include "patterns/contrib/masks.h"

namespace attn_opt {

struct ContribOperands {
  OperandView q, k, v;
};

/// The axes of (B, rows, HEADS * FEATURES), which NODE reads or makes. Miss: "contrib.shape" for sizes of 0.
Matched<AxisMap> merged_axes(const Node& node, const Dim& batch, const Dim& rows, int64_t heads, const Dim& features);

/// Fills SDPA for NODE, whose first output is (B, L, H * Dv). Misses: "contrib.*".
Matched<void> describe_contrib(const ContribOperands& operands, const ContribMasking& masking, Value* attention_bias,
                               const ContribScores& scores, Node& node, MatchContext& context, InnerValues& inner, Sdpa& sdpa);

/// Enters what SDPA assumes of GroupQueryAttention in ONNX Runtime: it reads no score of a key that a query does not see and,
/// unless each batch element HAS_ALL_KEYS, no value behind the length of one.
void assume_of_hidden_keys(bool has_all_keys, Sdpa& sdpa);

}  // namespace attn_opt
