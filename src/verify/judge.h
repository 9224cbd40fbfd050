// Compares what the two sides of a site computed.
#pragma once

#include <set>
#include <span>

#include "src/verify/score_rows.h"

namespace attn_opt {

/// What a compared output is, which decides how exact it must be.
enum class OutputKind {
  kRows,  ///< Y: convex combinations of V's rows
  kProbabilities,
  kScores,
  kCopy,   ///< a present: must be equal to the bit
  kValue,  ///< of no attention: what is known of it is how far the model's own result lies from the exact one
};

struct JudgedOutput {
  OutputKind kind = OutputKind::kRows;
  const AxisMap* axes = nullptr;  ///< null: the last axis is one row
  std::string name;
  bool is_summed = false;  ///< of rows: another product is added to what attention makes
};

JudgedOutput judged_output(const Value& existing, const Sdpa& sdpa);

/// Assumed preconditions that may explain a difference.
struct Assumed {
  bool rows_keep_a_key = false;
  bool empty_rows_were_nan = false;  ///< rows-keep-a-key is a refinement: it explains nothing but NaN that becomes a number
  bool scores_finite = false;
  bool overflow_was_nan = false;  ///< the same of scores-finite
  bool values_were_nan = false;   ///< values-finite is a refinement
  bool exp_in_range = false;
  bool scores_above_fill = false;
  bool scores_within_clamp = false;
  explicit Assumed(std::span<const Precondition> preconditions);
};

struct Judgement {
  double difference = 0;  ///< largest unexplained: relative for algebra(), in ulps of the row's bound for in_type()
  std::string failure;    ///< empty: equal enough
  std::set<std::string> explained_by;  ///< ids of the preconditions that explain the rest
  bool has_equal_rows = false;         ///< some row that keeps a key is equal, and so no precondition was needed for it
  bool is_unlike = false;              ///< of another type or shape
  bool is_of_zero_row = false;         ///< FAILURE is of a row of which the side before makes 0

  void merge(const Judgement& other);
};

/// Right rewrites measure 1e-15 to 1e-7, wrong ones 1e-3 and more.
inline constexpr double kAlgebraLimit = 1e-6;
/// A row of Y rounds with its scores: an error of one ulp of the largest score in the exponent is a relative error of the
/// same size in each probability, and probabilities are weights of V. Each side rounds its scores some four times (the
/// factors of the scale, the product, each bias) by half an ulp and its probabilities three times (exp, sum, quotient),
/// which makes 7 ulps at worst; right rewrites of exported models measure up to 0.3.
inline constexpr double kUlpLimit = 8;

/// By how much further than the model's own result is at its worst row the written one may lie from the exact result, beside
/// what rounding the product of Q and K alone makes of a row. Right rewrites measure up to 2.
inline constexpr double kWorseLimit = 4;

struct Compared {
  const JudgedOutput& output;
  const Tensor& before;
  const Tensor& after;
  const Tensor* exact;  ///< what BEFORE is in double; null: is so itself
  const ScoreRows& rows;
  const SizeAssignment& sizes;
  const Assumed& assumed;
  double algebra_limit = kAlgebraLimit;  ///< of values of no attention: beyond what rounding their constants makes
  bool is_finer = false;                 ///< the model computes part of it in a wider type than it holds the rest in
  const Tensor* moves = nullptr;         ///< of those: by how much AttributeMoves lets each element differ; null: by nothing
};

/// Judgement (a): both tensors are double.
Judgement judge_algebra(const Compared& compared);
/// Judgement (b): COMPARISON's tensors in the model's type, which rounds to multiples of type_epsilon(TYPE). AFTER is as near
/// to BEFORE as the rounding of a row of its scores allows, and to the exact result where an overflow on the way makes NaN of
/// BEFORE ("scores-finite" explains that). Where the model is finer than its type, it is not much further from the exact result
/// than BEFORE is: a sum that the model makes in a wider type may not be made in a narrower one.
Judgement judge_in_type(const Compared& compared, DataType type);

/// Distance from 1 to the next number of TYPE.
double type_epsilon(DataType type);

}  // namespace attn_opt
