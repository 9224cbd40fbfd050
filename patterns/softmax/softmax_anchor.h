// Where a softmax is: the operator, or written out.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "attn_opt/miss.h"
#include "attn_opt/pattern.h"
#include "patterns/products/cut_columns.h"
#include "patterns/scores/score_form.h"
#include "patterns/scores/score_layout.h"
#include "patterns/softmax/row_maps.h"

namespace attn_opt {

struct SoftmaxSite {
  Value* input = nullptr;
  Value* output = nullptr;
  const Node* normaliser = nullptr;  ///< Softmax or LogSoftmax; null: written out
  std::optional<size_t> keys = 0;    ///< how many axes lie behind the one it runs over; nullopt where the rank is not known
  std::optional<double> exponent_offset;                            ///< see Sdpa
  double exponent_power = 1;                                        ///< see Sdpa
  double exponent_range = std::numeric_limits<double>::infinity();  ///< see Sdpa
  double times = 1;                                                 ///< OUTPUT is so many times the softmax
  double after_lowering = 1;     ///< what INPUT's rows are multiplied with once they are less by their largest
  bool is_weighed = false;       ///< exp() of others is multiplied with the softmax of scores
  bool is_less_log_sum = false;  ///< rows are less by the logarithm of their sum, which deep fills round away
  bool is_unlowered = false;     ///< exp() is taken of scores and a number: rows of a deep fill have no weights
  Value* lowered_by = nullptr;   ///< what each row was less by before exp() was taken
  double bound = -std::numeric_limits<double>::infinity();  ///< what LOWERED_BY is no less than, though all of a row may be
  std::vector<Value*> sinks = {};                           ///< columns beside INPUT, which has none of them (written_sinks.h)
  std::optional<CutColumns> cut_off = {};                   ///< of those of INPUT, which OUTPUT lacks
  bool nan_without_keys = false;                            ///< rows of nothing but -inf are NaN, whatever SINKS they have
  bool drops_sinks = false;                                 ///< what was cut off has no share in the sum
  Value* is_positive = nullptr;                             ///< the booleans that a sum of 0 was told by
  bool guards_nan = false;                                  ///< rows that are NaN are 0
  bool guards_empty_rows = false;                           ///< rows whose exponentials are all 0 are 0
  const Node* sum = nullptr;        ///< what adds up OUTPUT, which are exponentials then, for the division behind V
  const Node* product = nullptr;    ///< of OUTPUT and V, or what joins its parts
  ScoreForm weights = core_form();  ///< INPUT, and -inf where the exponentials were masked
  Value* divided = nullptr;         ///< the product, or its last two axes SWAPPED, divided by the sum
  bool swapped = false;
  Value* values = nullptr;           ///< what of V makes the features that are divided; null: all of it
  size_t features = 0;               ///< how many axes of DIVIDED lie behind the one where the sums have the size 1
  bool hides_infinity = false;       ///< a score of Inf leaves numbers, where the operator makes NaN
  bool hides_nan = false;            ///< exponentials that are NaN were 0
  bool less_largest_of_all = false;  ///< LOWERED_BY is one number for several rows, which their scores make
  bool pairs_scores = false;         ///< a score of -inf makes NaN, where the operator makes 0
  bool is_less_others = false;       ///< LOWERED_BY is made of all scores of a row, and is not the largest
  std::vector<Dim> key_blocks = {};  ///< numbers of keys of which each is summed up for itself; empty: all are together
  const Value* moved = nullptr;      ///< what the product's result is moved to before that is divided (late_division.h)
  std::vector<RowMap> maps = {};     ///< from MOVED to what is divided; none: that is
};

/// True if scores of SOFTMAX that are finite may be below its bound: rows of these have no weights.
bool has_finite_bound(const SoftmaxSite& softmax, Facts& facts);

/// Cheap: true for Softmax, and for nodes that may end a written-out one.
bool may_be_softmax(const Node& node);

/// Cheap: true if VALUE is an initializer or an input, or may be a copy of one or a number computed from some.
bool may_be_number(const Value* value);

/// The softmax that NODE is or ends, over whatever axis; nullopt if it is none.
///
///   Softmax(x)      Exp(e) / sum(Exp(e))      Exp(e) * (1 / sum(Exp(e)))      LpNormalization<p = 1>(Exp(e))
///   (Exp(e) V) / sum(Exp(e))      (Exp(e) V) * (1 / sum(Exp(e)))
///   Exp(LogSoftmax(x))      Exp(e - Log(ReduceSum(Exp(e))))      Exp(x - (m + Log(ReduceSum(Exp(x - m)))))
///   Exp(x - ReduceLogSumExp(x))      Exp(e - ReduceLogSum(Exp(e)))      1 / sum over pairs (pair_sums.h)
///
/// where e is x - ReduceMax(x), x less any number for each row, x with a number added, or x, and Exp(e) may be masked by Where
/// or by ones and zeros before it is summed up, be a product of exponentials (exponentials.h) or a softmax (weights.h), and be
/// computed anew for the sum (row_sum.h). Sums and maxima may be taken in another floating type, and sinks added to the sum
/// (written_sinks.h).
std::optional<SoftmaxSite> softmax_at(Node& node, MatchContext& context);
/// The same, or a number of TIMES it.
///
///   c Exp(e) / sum(Exp(e))      Exp(e) / ReduceMean(Exp(e))
std::optional<SoftmaxSite> multiple_of_softmax_at(Node& node, MatchContext& context);

/// The softmax that NODE, a Softmax or LogSoftmax, takes.
SoftmaxSite softmax_operator(Node& node, MatchContext& context);

/// SOFTMAX, of what MOVE reads, as the one that MADE, what MOVE makes of its result, holds; nullopt if it is more than a
/// softmax of scores.
///
///   T(Softmax(x))  =>  Softmax(T(x))
std::optional<SoftmaxSite> behind_move(SoftmaxSite softmax, const Node& move, Value& made, Node& reader, MatchContext& context);

/// True if VALUE is made of the product of two computed values by what scores pass.
bool is_of_scores(Value& value, Facts& facts);

/// True if SCORES are the largest of others, which no product of two computed values makes: a router's, of experts.
bool weighs_choices(Value& scores, Facts& facts);

/// Where WEIGHTS come to a product that no softmax which can be read stands in front of: what adds them up first, or reads
/// them. Null if they come to none; where they are not of such scores, if more than elementwise operators stand in between.
const Node* unread_weights(Value& weights, MatchContext& context);
/// unread_weights(), of what NODE makes; null unless these are powers, of such scores.
const Node* unread_exponentials(const Node& node, MatchContext& context);

/// Whether SOFTMAX runs over the keys, where LAYOUT is that of its result. Misses: "softmax.axis", "softmax.unknown-rank";
/// "product.probabilities-on-wrong-side": over the last axis, which the product with V does not sum over.
Matched<void> check_softmax_axis(const SoftmaxSite& softmax, const ScoreLayout& layout, MatchContext& context);

}  // namespace attn_opt
