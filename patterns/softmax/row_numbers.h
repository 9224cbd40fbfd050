// Numbers of rows that are made of exponentials of scores, their sums, largest scores and logarithms, as ratios (row_ratio.h).
//
//   exp(m - log(l))  =>  exp(m) / l      Sigmoid(a - b)  =>  e^a / (e^a + e^b)      Softplus(x)  =>  log(1 + e^x)
//   exp(ReduceLogSumExp(x))  =>  sum(exp(x))      sum(exp(x - m))  =>  sum(exp(x)) / exp(m)
//
// What is not made of others is an unknown, and so is the sum of the exponentials of scores.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "attn_opt/pattern.h"
#include "patterns/softmax/exponentials.h"
#include "patterns/softmax/lowered_scores.h"
#include "patterns/softmax/row_ratio.h"
#include "patterns/softmax/row_reduction.h"
#include "src/match/cut_range.h"

namespace attn_opt {

/// RATIO times exp() of so many TIMES the scores.
struct WeighedScores {
  RowRatio ratio = RowRatio::number(1);
  RowReduction scores;  ///< of which kTaken is the axis of the keys
  double times = 1;
  size_t sum = 0;  ///< the unknown that the sum of the exponentials is
};

/// Reads values placed in one frame. An axis of a value is one of the frame, the keys (RowReduction::kTaken), of size 1, or
/// that on which parts are stacked of which one is meant.
class RowNumbers {
 public:
  /// What is made for exponents that the graph has no value for stands above READER.
  RowNumbers(Node& reader, MatchContext& context) : reader_(reader), context_(context), facts_(context.facts) {}

  /// AT, a number for each row; nullopt if it has the axis of the keys.
  std::optional<RowRatio> number(RowReduction at);
  /// 1 / AT.
  std::optional<RowRatio> inverse(const RowReduction& at) { return divided(number(at)); }
  /// AT, exponentials of scores times numbers for each row; nullopt if it is anything else.
  std::optional<WeighedScores> weights(RowReduction at);
  /// The sums of exp() of so many times parts that are cut out of the scores of WEIGHED along their keys and together are all
  /// of them, added up: the sum of all in other words. Nullopt if there are none.
  std::optional<RowRatio> sum_in_blocks(const WeighedScores& weighed);
  /// Input INPUT of NODE, elementwise, which makes AT.
  RowReduction operand(const Node& node, size_t input, const RowReduction& at);
  /// AT before its elements were moved, or cast from one floating type to another.
  RowReduction source_of(RowReduction at);
  /// PLACED, of the parts that NODE stacks along an axis that is told in AT; nullopt if NODE stacks none.
  std::optional<RowReduction> part_in(const Node& node, const RowReduction& at);
  /// AT, along whose axis kTaken parts are added up, of each part; empty where there are not a few.
  std::vector<RowReduction> parts_along(const RowReduction& at);
  /// False if some exp() was taken of what may lie above 0, or a sum that divides may be 0.
  bool stays_in_range();
  /// See Sdpa.
  double exponent_power() const { return exponent_power_; }

 private:
  enum class Kind { kItself, kExponential, kSum };
  struct Unknown {
    Kind kind;
    const Value* value;
    std::vector<int> axes;
    double times;
    RowReduction at;
    LinearTerms terms = {};  ///< that are added up, of kSum
  };
  using Key = std::pair<const Value*, std::vector<int>>;
  using Known = std::map<Key, std::optional<RowRatio>>;

  std::optional<RowRatio> exponential(RowReduction at);
  std::optional<RowRatio> computed_number(const RowReduction& at);
  std::optional<RowRatio> computed_exponential(const RowReduction& at);
  std::optional<RowRatio> added(const Node& node, const RowReduction& at);
  std::optional<RowRatio> exponential_of_sum(const Node& node, const RowReduction& at, double times);
  std::optional<RowRatio> exponential_of_multiple(const Node& node, const RowReduction& at);
  std::optional<RowRatio> divided(std::optional<RowRatio> divisor);
  std::optional<RowRatio> sum_of_parts(const RowReduction& at, bool of_exponentials);
  std::optional<RowRatio> summed(const Node& node, const RowReduction& at, bool of_exponentials);
  std::optional<RowRatio> share_of_parts(const Node& node, const RowReduction& at);
  RowReduction placed(Value& value, const RowReduction& at);
  std::optional<RowRatio> exponential_in(const RowReduction& at);
  std::optional<WeighedScores> exponentials_of(Exponent power, const RowReduction& at);
  size_t sum_of(const RowReduction& scores, double times);
  std::optional<RowRatio> summed_in_words(const RowReduction& at);
  void note_range(const Exponent& exponent);
  std::optional<WeighedScores> normalised(const Node& node, const RowReduction& at);
  std::optional<WeighedScores> scaled(const Node& node, const RowReduction& at);
  std::optional<RowReduction> uncut(const RowReduction& at);
  bool stacks_parts(const RowReduction& at);
  /// The block of keys of WEIGHED that UNKNOWN is the sum of the exponentials of, or the only one of; nullopt if it is of none.
  std::optional<CutRange> block_of(const Unknown& unknown, const WeighedScores& weighed);
  bool takes_row(const Node& node, size_t input, const RowReduction& at);
  size_t unknown(Kind kind, const RowReduction& at);
  RowRatio leaf(Kind kind, const RowReduction& at) { return RowRatio::unknown(unknown(kind, at)); }

  struct Maxima {
    std::vector<RowReduction> rows, scores;  ///< what is no greater, and of which each row's largest is none
    bool are_all = true;                     ///< nothing else is as great
  };
  void enter_maxima(RowReduction at, int steps, Maxima& maxima);
  Maxima maxima_of(const Unknown& maximum);
  bool is_below_one(const RowRatio& power);
  bool is_above_zero(const RowRatio& divisor);
  bool is_lowered(const WeighedScores& weighed);
  /// The unknown that a PRODUCT of powers has to the power -TIMES, if it is exp() of something and that is the only one below
  /// 0.
  const Unknown* divisor_in(const Powers& product, double times);

  Node& reader_;
  MatchContext& context_;
  Facts& facts_;
  std::vector<Unknown> unknowns_;
  Known numbers_, exponentials_;
  std::vector<RowRatio> exponents_, divisors_;  ///< what exp() was taken of, as that, and what divided
  std::vector<WeighedScores> lowered_;          ///< what exp() was taken of with keys
  /// Beside a large number, as the largest score of a masked row, the logarithm of a sum is lost. Of a product of exponentials
  /// each may leave the range of exp().
  bool may_leave_range_ = false;
  double exponent_power_ = 1;
  int nodes_ = 0;
};

}  // namespace attn_opt
