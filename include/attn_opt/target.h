// Whose rules written Attention nodes keep: one table, a row for each target. Measured with ONNX's reference 1.23,
// ONNX Runtime 1.31 and OpenVINO 2026.4, on the CPU.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attn_opt/tensor.h"

namespace attn_opt {

/// What is to run the model.
enum class Target {
  kPortable,  ///< runs, with the same numbers, in ONNX Runtime, OpenVINO and the reference
  kSpec,      ///< all that the operator as ONNX defines it takes
  kOrt,
  kOpenVino,
  kOrtContrib,  ///< ONNX Runtime, by operators of com.microsoft
  kCuda,        ///< its providers, with the operators that they have
  kDirectMl,
  kWebGpu,
};

/// The operators that attention is written as.
enum class OperatorFamily {
  kOnnx,       ///< Attention
  kMicrosoft,  ///< com.microsoft: MultiHeadAttention, and GroupQueryAttention for shared heads
};

/// What a target's operators of com.microsoft take, beside Q, K and V.
struct ContribRules {
  bool multi_head_causal = false;   ///< MultiHeadAttention: unidirectional
  bool multi_head_lengths = false;  ///< MultiHeadAttention: key_padding_mask (B)
  bool grouped_bias = false;        ///< GroupQueryAttention: attention_bias
  bool grouped_softcap = false;
  bool grouped_past = false;  ///< a past that is another tensor than the present
  bool not_causal = false;    ///< GroupQueryAttention: causal = 0
  bool query_counts = false;  ///< GroupQueryAttention: query_seqlens
};

/// What a target's Attention takes: what its row does not name, it does not take.
struct TargetRules {
  std::string_view name = {};
  OperatorFamily family = OperatorFamily::kOnnx;
  bool takes_bfloat16 = false;
  bool takes_double = false;
  bool takes_bool_masks = false;            ///< else a mask is added
  bool broadcasts_mask_rows = false;        ///< a mask may have one row for all queries
  bool takes_rank_1_masks = false;          ///< with one row: (S)
  bool takes_masks_of_few_axes = false;     ///< not just (1 or B, 1 or H, L, S)
  bool broadcasts_masks = false;            ///< a mask may have one batch element or one head for all
  bool takes_short_masks = false;           ///< for fewer keys than there are: the others are masked
  bool tells_lowest_from_infinity = false;  ///< a mask's lowest number is a number and no -inf
  bool counts_causal_from_past = false;     ///< is_causal counts from the past's length, however many new keys there are
  bool one_query_sees_all = false;   ///< is_causal hides nothing from a single query behind a past, however many new keys
  bool shows_scores = false;         ///< has qk_matmul_output, in every mode
  bool shows_masked_scores = false;  ///< qk_matmul_output after the mask holds -inf where a key is masked, however that is said
  bool takes_any_length = false;     ///< nonpad_kv_seqlen may lie outside 0 to S
  bool takes_past_without_present = false;  ///< present_key and present_value need not be asked for beside past_key
  bool takes_empty_sizes = false;           ///< batch, queries or keys of which there are none
  bool infers_shared_heads = false;         ///< that query heads share those of K and V need not be said beside 4-D inputs
  bool infers_ranks_in_loops = false;       ///< the ranks of what a body carries need not be declared beside 3-D inputs
  bool folds_linear_masks =
      false;  ///< x * a + b + c becomes x * a + (b + c) where a, b and c are constants: a fill rounds c away, or it never ends
  bool takes_moved_int8 = false;      ///< DequantizeLinear of int8 may stand in front of Reshape and the like at any opset
  bool takes_static_caches = false;   ///< runs TensorScatter beside lengths, or GroupQueryAttention on buffers
  bool has_windows = false;           ///< left_window_size, right_window_size of opset 25, or local_window_size
  bool keeps_opset = false;           ///< models stay at their own unless another is asked for
  int greatest_opset = 0;             ///< models are not raised above it; 0: to any
  std::optional<Target> faster = {};  ///< whose operators are written where the runtime is faster with them
  ContribRules contrib = {};
};

/// The row of TARGET.
const TargetRules& rules_of(Target target);
/// None if there is no target of that NAME.
std::optional<Target> target_named(std::string_view name);
/// In the order of the enumeration.
std::vector<std::string> target_names();

}  // namespace attn_opt
