// Where a softmax is: the operator, or written out.
#pragma once

#include <optional>

#include "attn_opt/miss.h"
#include "attn_opt/pattern.h"
#include "patterns/score_form.h"
#include "patterns/score_layout.h"

namespace attn_opt {

struct SoftmaxSite {
  Value* input = nullptr;
  Value* output = nullptr;
  const Node* normaliser = nullptr;       ///< Softmax or LogSoftmax; null: written out, over the last axis
  std::optional<double> exponent_offset;  ///< see Sdpa
  const Node* sum = nullptr;              ///< what adds up OUTPUT, which are exponentials then, for the division behind V
  const Node* product = nullptr;          ///< of OUTPUT and V
  ScoreForm weights = core_form();        ///< INPUT, and -inf where the exponentials were masked
  Value* divided = nullptr;               ///< the product, or its last two axes SWAPPED, divided by the sum
  bool swapped = false;
};

/// Cheap: true for Softmax, and for nodes that may end a written-out one.
bool may_be_softmax(const Node& node);

/// The softmax that NODE is or ends, over whatever axis; nullopt if it is none.
///
///   Softmax(x)      Exp(e) / ReduceSum(Exp(e))      Exp(e) * Reciprocal(ReduceSum(Exp(e)))
///   (Exp(e) V) / ReduceSum(Exp(e))      (Exp(e) V) * Reciprocal(ReduceSum(Exp(e)))      the sum also as Exp(e) times ones
///   Exp(LogSoftmax(x))      Exp(e - Log(ReduceSum(Exp(e))))      Exp(x - ReduceLogSumExp(x))
///
/// where e is x - ReduceMax(x), x less any number for each row, x with a number added, or x, and Exp(e) may be masked by Where or by
/// ones and zeros before it is summed up. Sums and maxima may be taken in another floating type.
std::optional<SoftmaxSite> softmax_at(Node& node, MatchContext& context);

/// How many axes of the softmax's result lie behind the one that it runs over.
size_t keys_before_last(const SoftmaxSite& softmax, MatchContext& context);

/// The sum of exponentials that NODE, a division which is no softmax that can be read, divides by; null if there is none.
const Node* unread_sum(const Node& node, Facts& facts);

/// Whether SOFTMAX runs over the keys, where LAYOUT is that of its result. Misses: "softmax.axis", "softmax.unknown-rank";
/// "product.probabilities-on-wrong-side": over the last axis, which the product with V does not sum over.
Matched<void> check_softmax_axis(const SoftmaxSite& softmax, const ScoreLayout& layout, MatchContext& context);

}  // namespace attn_opt
