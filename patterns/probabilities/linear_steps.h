// What is linear in probabilities: it multiplies or drops whole rows, or the keys of all rows alike, or adds to them.
//
//   (p + x) V  =>  p V + x V          (x - p) V  =>  x V - p V                        x: of the probabilities' rows and keys
//   (g * p) V  =>  g * (p V)          Where(c, p, 0) V  =>  Where(c, p V, 0)          g, c: one element for each row
//   (p * w) V  =>  p (w * V)          Where(c, p, 0) V  =>  p Where(c, V, 0)          w, c: one element for each key, or one
//   for all
//
// Batches and heads may have their own g, w and c. Where V has one of these for several, as heads that share values do, a
// factor without keys acts on Y.
#pragma once

#include <optional>
#include <vector>

#include "attn_opt/pattern.h"
#include "patterns/probabilities/factor_maps.h"
#include "patterns/readers.h"

namespace attn_opt {

struct LinearStep {
  Node* node = nullptr;      ///< Mul, Div, Where or what adds
  size_t probabilities = 0;  ///< the input that they are
  bool is_of_rows = false;   ///< else of keys, or one number for a whole head
  bool is_number = false;    ///< one for all heads too
  bool may_be_mask = false;  ///< of keys, and of the axis beside them, which is that of heads where one query has none
  bool adds = false;         ///< the operand to them, or subtracts
  size_t at = 0;             ///< in ProbabilityWalk::way

  Value& operand() const { return *node->inputs[node->is("Where") ? 0 : 1 - probabilities]; }
};

/// The step that the only node that reads PROBABILITIES makes, whose keys lie KEYS_FROM_LAST; nullopt if it makes none. Where
/// it is not known where keys lie, a number is all that steps.
std::optional<LinearStep> linear_step(const Readers& readers, Value& probabilities, std::optional<size_t> keys_from_last,
                                      MatchContext& context);

/// True if each of STEPS, of probabilities whose keys lie KEYS_FROM_LAST, does the same to all keys, whichever are left.
bool are_alike_for_keys(const std::vector<LinearStep>& steps, size_t keys_from_last, Facts& facts);

/// STEP's operator with SIDE, of the product READER, in the place of the probabilities, to which FACTOR, its operand,
/// broadcasts: V for a step of keys, Y for one of rows. Nullopt: FACTOR does not broadcast to SIDE, or not without copies where
/// it MAY_COPY none.
std::optional<OutputStep> beside_product(const LinearStep& step, const Broadcast& factor, const FactorSide& side, bool may_copy,
                                         Node& reader, MatchContext& context);

/// STEP, one of STEPS that adds, of what PRODUCT makes of PROBABILITIES, which come from the sum linearly but for what other
/// steps add. Miss "probabilities.operator": PRODUCT does not take an operand that broadcasts.
Matched<OutputStep> sum_behind_product(const LinearStep& step, const std::vector<LinearStep>& steps, Value& probabilities,
                                       Node& product, MatchContext& context);

/// MADE, by a product that an earlier edit wrote, behind what that edit adds to it: these are STEPS too, since what is written
/// now stands below.
Value& behind_added(Value& made, std::vector<OutputStep>& steps);

}  // namespace attn_opt
