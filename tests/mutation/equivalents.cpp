#include "tests/mutation/equivalents.h"

namespace attn_opt {
namespace {

constexpr const char* kReshapeBetween = "only a Reshape lies between the two values, and what is written reshapes either";
constexpr const char* kAbsorbed = "any fill this deep leaves a masked key the probability 0, whatever the number";
constexpr const char* kEmptyRowsAlone =
    "only rows differ in which every key is masked by one Where or the other, and that there are none is assumed";
constexpr const char* kNoLowest = "the mask holds 0 and -1e4: the Where that replaces the lowest number replaces nothing";
constexpr const char* kShift = "every key that is kept, or every one that is not, shifts alike, which softmax does not see";
constexpr const char* kCommutes = "the two masks are added: their order does not matter";
constexpr const char* kRounding = "over the few keys of a draw a softmax in float16 is off by less than its result is rounded";
constexpr const char* kNoSoftcap = "without a softcap the stages 1 and 2 of the scores are one";

constexpr const char* kNoSoftcapBelow = "without a softcap the stages 0 and 1 of the scores are one";
constexpr const char* kStagesAreOne = "without a softcap and a mask the stages 0, 1 and 2 of the scores are one";
constexpr const char* kZeroAnyway = "Attention nodes on both sides give 0 in rows without a key, whatever the description says";

constexpr const char* kCausalAnyway = "the mask shows no query a later key as it is";
constexpr const char* kDeepAnyway = "positions make a mask of 0 and what masks a key however often it is counted";
constexpr const char* kKeepsItsKey = "positions leave every query a key, so that no row shows how deep the others are masked";
constexpr const char* kListedByTheEdit = "the edit lists it itself where is_causal stands for a fill";
constexpr const char* kLeavesExpRange = "rows that differ leave the range of exp(), which is assumed not to happen";
constexpr const char* kLargeAlready = "the mask is as large as the scores: that it is could only not be proven";

}  // namespace

bool Equivalent::is_for(const std::string& other_model) const {
  if (!model.starts_with('*')) return model == other_model;
  return other_model.find(model.substr(1)) != std::string::npos;
}

const std::vector<Equivalent>& equivalents() {
  static const std::vector<Equivalent> all = {
      {"operands: K read above its layout", "key_swapped_in_three_dimensions", kReshapeBetween},
      {"operands: K read below its layout", "sequence_first", kReshapeBetween},
      {"operands: V read below its layout", "sequence_first", kReshapeBetween},
      {"operands: V read below its layout", "heads_tiled_expanded", kReshapeBetween},
      {"operands: K read below its layout", "keys_from_attention_above", "two Transposes that undo each other lie between"},
      {"fill: -1e4 for lowest", "where_two_fills", kEmptyRowsAlone},
      {"fill: -1e4 for lowest", "where_over_bias", kEmptyRowsAlone},
      {"fill: -1e4 for lowest", "where_then_bias", kEmptyRowsAlone},
      {"fill: halved", "where_two_fills", kAbsorbed},
      {"fill: halved", "where_drop_lowest", kAbsorbed},
      {"fill: halved", "where_lowest_float16", kAbsorbed},
      {"fill: -1e4 for lowest", "where_lowest_float16", kAbsorbed},
      {"Attention inputs: mask x 1.01", "where_lowest_float16", kAbsorbed},
      {"number laid over: doubled", "where_lowest_float16", kAbsorbed},
      {"number laid over: halved", "where_lowest_float16", kAbsorbed},
      {"number laid over: x 1.01", "where_lowest_float16", kAbsorbed},
      {"number kept: + 1", "where_lowest_float16", kShift},
      {"number kept: halved", "where_drop_lowest", kAbsorbed},
      {"number laid over: halved", "where_two_fills", kAbsorbed},
      {"number laid over: doubled", "where_two_fills", kAbsorbed},
      {"number laid over: x 1.01", "where_two_fills", kAbsorbed},
      {"number laid over: off by 64 ulp", "where_two_fills", kAbsorbed},
      {"guard: overlooked", "bool_mask", "a float mask of -inf gives 0 in rows without a key as the bool mask does"},
      {"guard: overlooked", "mask_of_one_row", "a float mask of -inf gives 0 in rows without a key as the bool mask does"},
      {"guard: overlooked", "short_mask", kZeroAnyway},
      {"guard: overlooked", "short_mask_for_spec", kZeroAnyway},
      {"scores output: the stage before", "scores_output", kNoSoftcap},
      {"scores output: another stage of the scores", "scores_wanted", kNoSoftcapBelow},
      {"scores output: another stage of the scores", "softmax_log_sum_exp", kNoSoftcapBelow},
      {"scores output: another stage of the scores", "softmax_log_written_out", kNoSoftcapBelow},
      {"scores output: another stage of the scores", "softmax_of_added_negatives", kNoSoftcapBelow},
      {"scores output: another stage of the scores", "softmax_times_copied_one", kNoSoftcapBelow},
      {"scores output: another stage of the scores", "softmax_written_out", kNoSoftcapBelow},
      {"scores output: another stage of the scores", "softmax_written_out_reciprocal", kNoSoftcapBelow},
      {"Attention.qk_matmul_output_mode: + 1 modulo 4", "scores_wanted", kStagesAreOne},
      {"Attention.qk_matmul_output_mode: + 1 modulo 4", "softmax_log_sum_exp", kStagesAreOne},
      {"Attention.qk_matmul_output_mode: + 1 modulo 4", "softmax_log_written_out", kStagesAreOne},
      {"Attention.qk_matmul_output_mode: + 1 modulo 4", "softmax_of_added_negatives", kStagesAreOne},
      {"Attention.qk_matmul_output_mode: + 1 modulo 4", "softmax_times_copied_one", kStagesAreOne},
      {"Attention.qk_matmul_output_mode: + 1 modulo 4", "softmax_written_out", kStagesAreOne},
      {"Attention.qk_matmul_output_mode: + 1 modulo 4", "softmax_written_out_reciprocal", kStagesAreOne},
      {"Attention.qk_matmul_output_mode: + 2 modulo 4", "scores_wanted", kStagesAreOne},
      {"Attention.qk_matmul_output_mode: + 2 modulo 4", "softmax_log_sum_exp", kStagesAreOne},
      {"Attention.qk_matmul_output_mode: + 2 modulo 4", "softmax_log_written_out", kStagesAreOne},
      {"Attention.qk_matmul_output_mode: + 2 modulo 4", "softmax_of_added_negatives", kStagesAreOne},
      {"Attention.qk_matmul_output_mode: + 2 modulo 4", "softmax_times_copied_one", kStagesAreOne},
      {"Attention.qk_matmul_output_mode: + 2 modulo 4", "softmax_written_out", kStagesAreOne},
      {"Attention.qk_matmul_output_mode: + 2 modulo 4", "softmax_written_out_reciprocal", kStagesAreOne},
      {"number kept: halved", "mask_of_one_key_opset_23", kShift},
      {"number kept: negated", "mask_of_one_key_opset_23", kShift},
      {"terms: bias left out", "mask_of_one_key_opset_23", kShift},
      {"terms: bias scaled as the scores are", "mask_of_one_key_opset_23", kShift},
      {"terms: bias x 1.01", "mask_of_one_key_opset_23", kShift},
      {"Attention.qk_matmul_output_mode: + 3 modulo 4", "scores_output", kNoSoftcap},
      {"Attention.softmax_precision: left out", "bias_in_half", kRounding},
      {"Attention.softmax_precision: left out", "bias_in_single_above_half", kRounding},
      {"tensor scale: beside the other operand", "scale_per_head", "a factor for each head scales Q K^T beside either"},
      {"terms: masks exchanged", "bias_two", kCommutes},
      {"terms: masks exchanged", "floor_above_two_masks", kCommutes},
      {"terms: masks exchanged", "where_two_fills", kEmptyRowsAlone},
      {"terms: order exchanged", "where_two_fills", kEmptyRowsAlone},
      {"terms: fills exchanged", "where_two_fills", kEmptyRowsAlone},
      {"Expand: left out", "cache_and_mask", kLargeAlready},
      {"Expand: left out", "causal_other_queries", kLargeAlready},
      {"causal: where it is not", "*causal_", kCausalAnyway},
      {"causal: where it is not", "gpt2-past-ts17s", kCausalAnyway},
      {"causal: where it is not", "llama-past-ts17s", kCausalAnyway},
      {"Attention.is_causal: added", "*causal_", kCausalAnyway},
      {"terms: bias twice", "*causal_", kDeepAnyway},
      {"terms: bias x 1.01", "*causal_", kDeepAnyway},
      {"terms: bias scaled as the scores are", "*causal_", kDeepAnyway},
      {"terms: masks exchanged", "*causal_", kCommutes},
      {"Attention inputs: mask x 1.01", "*causal_", kDeepAnyway},
      {"Attention inputs: mask through float16", "*causal_", kDeepAnyway},
      {"number kept: doubled", "*causal_", kKeepsItsKey},
      {"number kept: halved", "*causal_", kKeepsItsKey},
      {"number kept: x 1.01", "*causal_", kKeepsItsKey},
      {"number kept: off by 64 ulp", "*causal_", kKeepsItsKey},
      {"number laid over: halved", "*causal_", kKeepsItsKey},
      {"fill: halved", "*causal_", kKeepsItsKey},
      {"fill: -1e4 for -inf", "*causal_", kKeepsItsKey},
      {"fill: -1e4 for -inf", "gpt2-past-ts17s", kKeepsItsKey},
      {"fill: lowest for -inf", "*causal_", kKeepsItsKey},
      {"preconditions: 'scores-finite' left out", "*causal_", kListedByTheEdit},
      {"causal: where it is not", "*window", kCausalAnyway},
      {"Attention.is_causal: added", "*window", kCausalAnyway},
      {"guard: seen where there is none", "*window", kKeepsItsKey},
      {"preconditions: 'rows-keep-a-key' left out", "*window", kKeepsItsKey},
      {"preconditions: 'rows-keep-a-key' taken for proven", "*window", kKeepsItsKey},
      {"terms: bias scaled as the scores are", "*window", kDeepAnyway},
      {"terms: bias twice", "*window", kDeepAnyway},
      {"terms: bias x 1.01", "*window", kDeepAnyway},
      {"Attention inputs: mask through float16", "*window", kDeepAnyway},
      {"Attention inputs: mask x 1.01", "*window", kDeepAnyway},
      {"guard: seen where there is none", "softmax_without_maximum_masked", kLeavesExpRange},
      {"preconditions: 'rows-keep-a-key' left out", "softmax_without_maximum_masked", kLeavesExpRange},
      {"preconditions: 'rows-keep-a-key' taken for proven", "softmax_without_maximum_masked", kLeavesExpRange},
      {"number kept: doubled", "softmax_without_maximum_masked", kLeavesExpRange},
      {"number kept: halved", "softmax_without_maximum_masked", kLeavesExpRange},
      {"number kept: x 1.01", "softmax_without_maximum_masked", kLeavesExpRange},
      {"number kept: off by 64 ulp", "softmax_without_maximum_masked", kLeavesExpRange},
      {"Unsqueeze: left out", "mask_of_one_axis", "the Expand behind it puts axes in front as well"},
      {"Mul: Div in its place", "bias_subtracted", "the factor is -1"},
      {"number kept: + 1", "where_then_bias", kShift},
      {"number kept: + 1", "where_two_fills", kShift},
      {"number laid over: + 1", "where_drop_lowest", kShift},
      {"number laid over: + 1", "where_two_fills", kShift},
      {"Where: the second branch alone", "bias_in_single_above_half", kNoLowest},
      {"number kept: 0", "bias_in_single_above_half", kNoLowest},
      {"number kept: doubled", "bias_in_single_above_half", kNoLowest},
      {"number kept: halved", "bias_in_single_above_half", kNoLowest},
      {"number kept: negated", "bias_in_single_above_half", kNoLowest},
      {"number kept: x 1.01", "bias_in_single_above_half", kNoLowest},
  };
  return all;
}

}  // namespace attn_opt
