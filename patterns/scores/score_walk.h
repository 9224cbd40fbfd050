// The scores: from the softmax's input upward to the product of Q and K, one wrapper at a time.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "attn_opt/miss.h"
#include "attn_opt/pattern.h"
#include "patterns/products/cut_columns.h"
#include "patterns/scores/score_form.h"
#include "patterns/scores/score_layout.h"
#include "patterns/scores/score_split.h"
#include "patterns/scores/sinks.h"

namespace attn_opt {

/// A value on the way that others read too, and what the walk had peeled above it.
struct ReadScores {
  Value* value = nullptr;
  double scale = 1;
  double softcap = 0;
  bool is_placed = true;  ///< its axes stand where those of the operator's output do
  size_t tensor_scales = 0, changes = 0;
};

/// What has been peeled so far: the softmax's input is the scores described here, made of VALUE.
///
///   input = terms(softcap(scale * form(VALUE)))
struct ScoreWalk {
  Value* value = nullptr;
  Node* reader = nullptr;        ///< makes the softmax's input: what is made for terms stands above it
  ScoreForm form = core_form();  ///< what no term says yet
  size_t changes = 0;            ///< steps that did more than scale
  double scale = 1;
  double softcap = 0;
  DataType narrowest = onnx::TensorProto::UNDEFINED;  ///< see Sdpa's narrowest_scores; UNDEFINED: not known yet
  ScoreLayout layout;                                 ///< of VALUE; terms and factors are placed already
  std::optional<ScoreSplit> split;                    ///< VALUE has its axes for queries and keys
  std::vector<TensorScale> tensor_scales;
  std::vector<ScoreTerm> terms;        ///< outermost first
  std::vector<ReadScores> read;        ///< from the softmax upward
  std::vector<Shape> frames;           ///< shapes that the scores had before leading axes were regrouped
  std::optional<double> clamp;         ///< see Sdpa
  bool cancels_norms = false;          ///< what Q K^T says of distances is less than what it is made of
  bool hides_infinity = false;         ///< -Inf was raised to a lowest number, Inf lowered to a greatest, or squared
  bool makes_nan_of_infinity = false;  ///< 0 times scores, or others, was added
  bool lowered = false;                ///< the maximum of a row, or of all, was subtracted
  bool adds_to_lowered = false;        ///< a bias was added to the rest
  double after_lowering = 1;           ///< what the rest was multiplied with behind that
  bool lowered_by_largest_of_all = false;
  bool leaves_exp_range = false;         ///< exp() was taken of them on the way
  bool sums_otherwise = false;           ///< see Sdpa
  bool sums_operands = false;            ///< Q or K is a sum that the model does not make
  bool caps_in_exp_range = false;        ///< exponentials of them were divided by others for the softcap
  bool lies_above_fill = false;          ///< the lesser of scores and a fill was taken
  const Value* lowered_value = nullptr;  ///< read by nothing but the maximum and what subtracts it
  std::optional<CutColumns> cut_off;     ///< behind the softmax, and not found beside the scores yet
  std::optional<JoinedSinks> sinks;      ///< what was found there
  std::vector<std::string> peeled;

  /// True if a number that is added to all scores of a row here is more than the softmax leaves out: it is capped, multiplied
  /// with a tensor, or told apart from the scores' own axes.
  bool changes_row_numbers() const { return softcap != 0 || !tensor_scales.empty() || split.has_value(); }
  /// The maximum of a row, or of all, is subtracted where the walk stands.
  void lower() {
    lowered = true;
    adds_to_lowered = adds_to_lowered || has_addends(form) || std::ranges::any_of(terms, is_bias);
    after_lowering = form.size() == 1 ? scale * form[0].scale : 1;
  }
  /// What has become of PART's scores has become of these.
  void take_changes_of(const ScoreWalk& part);
  /// What is added in FORM, where the walk stands, is multiplied with the tensors below for itself.
  void add_below_scales(const ScoreForm& added) {
    sums_otherwise = sums_otherwise || (!tensor_scales.empty() && has_addends(added));
  }
  /// The scores above are held within LARGEST and its negative, which the operator does nowhere.
  void clamp_at(double largest) {
    clamp = std::min(clamp.value_or(largest), largest);
    read.clear();
  }
};

/// What is done behind the softmax to what it makes of the scores.
struct ScoresEnd {
  std::optional<CutColumns> cut_off;
  std::optional<ScoreSplit> split;  ///< rows that are regrouped there
  std::vector<Value*> sinks;        ///< columns that the softmax runs over as well
  double after_lowering = 1;        ///< see SoftmaxSite
  bool drops_sinks = false;  ///< what is cut off is no more when masks are laid over the rest, which is divided by its sum
};

/// Peels from SOFTMAX_INPUT of LAYOUT, which the softmax takes as FORM and of which END becomes the product's operand, to a
/// MatMul or Einsum whose result the walk's VALUE then is. Misses: "scores.*".
Matched<ScoreWalk> walk_scores(Value& softmax_input, const ScoreForm& form, ScoreLayout layout, ScoresEnd end,
                               MatchContext& context);

/// The value that qk_matmul_output can make.
struct ScoresOutput {
  Value* value = nullptr;
  int mode = 0;
};

/// What of WALK's scores that others read can be an output of the operator; nullopt if nothing can.
std::optional<ScoresOutput> scores_output(const ScoreWalk& walk);

/// One row of the table of peels: how to look through a node of type OP. Several results are several ways to read it.
struct ScorePeel {
  const char* op;
  Matched<std::vector<ScoreWalk>> (*peel)(Node& node, const ScoreWalk& walk, MatchContext& context);
};
const std::vector<ScorePeel>& score_peels();

}  // namespace attn_opt
