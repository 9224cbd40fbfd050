// What an Attention node means, as an Sdpa. The node may be unplaced: a front end can describe its operator by drafting one.
#pragma once

#include "attn_opt/pattern.h"

namespace attn_opt {

/// The values that the outputs of an Attention node are to make; null: not wanted.
struct AttentionOutputs {
  Value* y = nullptr;
  Value* present_key = nullptr;
  Value* present_value = nullptr;
  Value* scores = nullptr;  ///< qk_matmul_output
};

/// NODE, its operands walked. The one entry of its outputs is OUTPUTS.y with the axes of Y.
/// Misses: "attention-node.*".
Matched<Sdpa> describe_attention(Node& node, const AttentionOutputs& outputs, MatchContext& context);

/// SCORES, an output of an operator of (batch, heads, queries, keys) that SDPA, its operands walked, says.
OutputView scores_of_operator(Value& scores, const Sdpa& sdpa, Facts& facts);

}  // namespace attn_opt
