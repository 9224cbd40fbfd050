// Masks of com.microsoft::MultiHeadAttention and Attention, which are integers, as what is added to the scores.
#pragma once

#include "patterns/inner_values.h"

namespace attn_opt {

/// The scores (B, H, L, P + S) of a node, S being new keys.
struct ContribScores {
  Dim batch, heads, queries, new_keys, past;
  Value* batch_size = nullptr;  ///< int64 [1], as those below
  Value* query_count = nullptr;
  Value* key_count = nullptr;   ///< P + S
  Value* past_count = nullptr;  ///< null: no past
  DataType type = onnx::TensorProto::UNDEFINED;

  Dim keys() const { return past + new_keys; }
  Shape frame() const { return {batch, heads, queries, keys()}; }
};

struct ContribMasking {
  Value* padding = nullptr;  ///< the operator's integer mask; null: none
  double fill = -10000;      ///< what it adds where a key is padding
  bool is_causal = false;
  bool knows_ends_and_starts = false;  ///< a mask (2B) is ends and then starts
  bool knows_no_mask = false;          ///< a mask (B, 1) masks nothing
};

/// Enters that in every run the operator is given integers VALUE from LEAST to MOST; what VALUE copies is given them then.
void enter_legal_integers(Value& value, const Dim& least, const Dim& most, Facts& facts, Sdpa& sdpa);
/// Enters the terms that MASKING adds to the scores in SDPA, innermost first. Misses: "contrib.mask-form".
Matched<void> add_mask_terms(const ContribMasking& masking, const ContribScores& scores, const Node& node, Facts& facts,
                             InnerValues& inner, Sdpa& sdpa);
/// Enters that in every run BIAS has the sizes of the scores, or 1 batch and head, which are taken for all here.
void enter_legal_bias(const Value& bias, const ContribScores& scores, Facts& facts, Sdpa& sdpa);
/// Enters BIAS (B or 1, H or 1, L, P + S), which may be null.
void add_attention_bias(Value* bias, const ContribScores& scores, Facts& facts, Sdpa& sdpa);

}  // namespace attn_opt
