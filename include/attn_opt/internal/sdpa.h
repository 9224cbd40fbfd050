// Attention, described: what every front end produces and every back end takes.
//
//   scores = softcap(scale * tensor_scales * Q K^T), then each term in turn: + coefficient * bias, or a fill laid over
//   probabilities = softmax(scores) over the keys, 0 for rows that the terms leave no key if guarded
//   Y = probabilities V
//
// Names of axes: B batch, H heads (query heads Hq, key/value heads Hkv), L queries, S keys, D features of Q and K,
// Dv features of V.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attn_opt/graph.h"
#include "attn_opt/internal/axis_map.h"
#include "attn_opt/internal/causal_mask.h"
#include "attn_opt/precondition.h"
#include "attn_opt/tensor.h"

namespace attn_opt {

/// One value that can serve as Q, K or V, and how its axes lie.
struct OperandView {
  Value* value = nullptr;
  AxisMap axes;
  double scale = 1;          ///< the operand at the product is this times VALUE
  Value* past = nullptr;     ///< (B, Hkv, P, D): the operand is past and then VALUE along the rows
  Value* present = nullptr;  ///< their concatenation, as the model makes it
};

/// Q, K or V: the same operand from the product upward, the first view being what the product reads.
struct Operand {
  std::vector<OperandView> views;

  bool has_view(const Value& value) const { return std::ranges::find(views, &value, &OperandView::value) != views.end(); }
};

/// A factor of the scores that is a tensor: (…, 1 or L, 1) beside Q, (…, 1, 1 or S) beside K.
struct TensorScale {
  Value* value = nullptr;
  bool divides = false;
  bool on_key = false;
  Shape frame;  ///< of the scores where it was met
};

/// The values that a description sums up, having more axes than the scores, for one term: on the last KEY_AXES of each lie the
/// keys.
struct BiasParts {
  std::vector<Value*> values;
  size_t key_axes = 0;
};

/// A step between the scores and the softmax: a bias, or a fill where a mask says so.
struct ScoreTerm {
  enum class Kind {
    kBias,   ///< scores + coefficient * value
    kKeep,   ///< Where(value, scores, coefficient * fill)
    kDrop,   ///< Where(value, coefficient * fill, scores)
    kFloor,  ///< Max(scores, coefficient * value), VALUE being FILL everywhere and below every score
  };
  Kind kind = Kind::kBias;
  Value* value = nullptr;
  double coefficient = 1;
  double fill = 0;
  Shape frame;  ///< shape of the scores where the term was met
  /// Which scores it leaves alone, and what at most it adds to or puts in the place of the others, if positions tell.
  std::optional<CausalMask> causal = std::nullopt;
  std::string not_causal = {};  ///< else: what is in the way
  BiasParts parts = {};         ///< none: VALUE is what the model adds
  bool adds_in_float = false;   ///< to the scores, whatever the type of Q, K and V
  bool is_added = false;        ///< of a fill of -inf: the model adds it, and what is NaN below it stays NaN
  double after_lowering = 1;    ///< part of COEFFICIENT that multiplies rows once they are less by their largest
  double cancelled = 0;         ///< what the model adds to scores besides, and takes away again: they are rounded by it
};

inline bool is_bias(const ScoreTerm& term) { return term.kind == ScoreTerm::Kind::kBias; }

/// A value that holds Y, in whatever layout.
struct OutputView {
  Value* value = nullptr;
  AxisMap axes;  ///< rows are queries, features those of V
};

/// What is done to Y, each row alike: an operator of the result so far, which null stands for, and values that broadcast to it.
struct OutputStep {
  std::string op_type;
  std::vector<Value*> operands;
  std::vector<onnx::AttributeProto> attributes = {};
  std::optional<AxisMap> axes = std::nullopt;  ///< of Y, in the first step that reads it so; none: those of outputs[0]
};

/// A value that is OF in the operator's own layout, (B, Hkv, S, D).
struct OperandCopy {
  Value* value = nullptr;
  OperandView of;
};

/// Integers that the operator must be given for it to run: every element lies in [LEAST, MOST].
struct LegalIntegers {
  Value* value = nullptr;
  Dim least, most;
};

/// Floats that a caller gives, of which more is taken for granted than their type says.
struct GivenFloats {
  std::vector<const Value*> binary;        ///< hold 0 and 1 alone
  std::vector<const Value*> not_negative;  ///< hold nothing below 0
  std::vector<const Value*> moved;         ///< what holds elements of these and nothing else
};

/// Scaled dot-product attention as the graph computes it.
struct Sdpa {
  Operand q, k, v;
  DataType type = onnx::TensorProto::UNDEFINED;  ///< that attention is computed in: Q, K and V are cast to it, Y back
  Dim batch, query_heads;                        ///< leading sizes of the scores

  double scale = 1;
  std::vector<TensorScale> tensor_scales;
  double softcap = 0;                 ///< 0: none
  std::vector<ScoreTerm> terms;       ///< innermost first
  bool is_causal = false;             ///< j <= i + past length
  Value* nonpad_kv_seqlen = nullptr;  ///< int64 (B): keys from there on are masked
  /// Query i stands at key i + past length; keys further before it than LEFT_WINDOW, or behind it than RIGHT_WINDOW, are
  /// masked. With nonpad_kv_seqlen it stands at i + nonpad_kv_seqlen - L, for is_causal too.
  std::optional<int64_t> left_window, right_window;
  DataType softmax_precision = onnx::TensorProto::UNDEFINED;  ///< UNDEFINED: that of the scores
  /// Of the types that the scores have on their way to the softmax, that of the smallest range; UNDEFINED: TYPE.
  DataType narrowest_scores = onnx::TensorProto::UNDEFINED;
  /// The softmax takes exp() of the scores plus this; none: of the scores less the largest of their row.
  std::optional<double> exponent_offset;
  std::vector<Dim> key_blocks;  ///< numbers of keys of which each is summed up for itself; empty: all are together
  double exponent_power = 1;    ///< at least 1: exp() was taken of so many times that, and a root of it
  /// What exponents may lie below 0 by, or apart, until their exponentials are as small as a number that they are added to.
  double exponent_range = std::numeric_limits<double>::infinity();
  /// The model holds scores within this, and its negative, before the softmax; none: it does not.
  std::optional<double> clamp;
  bool less_largest_of_all = false;  ///< the model subtracts the largest score of all rows, which softmax does not see
  bool less_others = false;          ///< the model subtracts another number of each row's scores than the largest of them
  bool sums_otherwise = false;       ///< the model adds biases to other numbers than the operator's scores
  bool less_row_numbers = false;     ///< exp() is of scores less numbers of their rows, which a softmax does not see
  bool infinity_makes_nan = false;   ///< the model makes NaN of rows in which a score is -Inf
  bool guarded = false;              ///< probabilities of rows that the terms leave no key are 0
  bool hides_nan = false;            ///< so are those that are NaN for another reason

  size_t products = 1;                      ///< with V, of the model's softmax: each is an attention of its own
  std::vector<OutputView> outputs;          ///< from the product with V downward
  std::vector<OutputStep> output_steps;     ///< that outputs[0], which is alone then, is behind
  std::optional<OutputView> probabilities;  ///< read by others than the product with V; the features are the keys
  std::optional<OutputView> scores_output;  ///< what is read of the scores, as the operator's output, in the same way
  int scores_output_mode = 0;
  std::vector<OperandCopy> copies;  ///< present outputs of an Attention node without a past

  std::vector<Precondition> preconditions;
  /// What holds in every run of the operator that is described, since it refuses all others: drawn inputs keep to it.
  std::vector<LegalIntegers> legal_integers;
  std::vector<std::pair<Dim, Dim>> legal_sizes;  ///< pairs that are equal, or the first broadcasts to the second
  GivenFloats given;
};

/// False for a description of nothing, which stands for what a rewrite replaces.
inline bool is_attention(const Sdpa& sdpa) { return !sdpa.q.views.empty(); }

}  // namespace attn_opt
