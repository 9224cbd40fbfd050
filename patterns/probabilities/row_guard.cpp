#include "patterns/probabilities/row_guard.h"

#include <algorithm>
#include <cmath>

#include "attn_opt/canonical.h"
#include "attn_opt/internal/mask_contents.h"
#include "attn_opt/operator_traits.h"
#include "patterns/alike.h"
#include "patterns/layout_checks.h"
#include "patterns/scores/conditions.h"
#include "patterns/scores/form_reader.h"
#include "patterns/scores/peel_steps.h"
#include "patterns/softmax/row_reduction.h"
#include "src/match/permutation.h"

namespace attn_opt {
namespace {

/// What CONDITION tests of rows, if the guard KEEPS those in which it is true.
std::optional<RowTest> test_of(Value& condition, bool keeps, size_t keys_from_last, Facts& facts) {
  const auto test = row_test(condition, keys_from_last, facts);
  return test && test->holds_for_kept == keeps ? test : std::nullopt;
}

/// m and any(m)  =>  m, of booleans whose keys lie KEYS_FROM_LAST
Condition without_own_test(const Condition& kept, size_t keys_from_last, Facts& facts) {
  auto both = conditions_of(kept, facts);
  for (int at = 0; both && at < 2; ++at, std::swap((*both)[0], (*both)[1])) {
    const Condition mask = affirmed((*both)[0], facts), other = affirmed((*both)[1], facts);
    const auto test = test_of(*other.value, other.is_true, keys_from_last, facts);
    if (test && !test->is_number && test->keeps == mask.is_true && &canonical(*test->rows, facts) == mask.value) return mask;
  }
  return kept;
}

/// PROBABILITIES times ones and zeros, which other sums of NODE's reader leave as they are.
std::optional<RowGuard> factor_at(Node& node, size_t probabilities, size_t keys_from_last, Facts& facts) {
  const auto condition = condition_of_number(*node.inputs[1 - probabilities], facts);
  if (!condition) return std::nullopt;
  if (auto test = test_of(*condition->value, condition->is_true, keys_from_last, facts)) return RowGuard{&node, test};
  return RowGuard{&node, std::nullopt, condition->value, condition->is_true};
}

/// True if ONE and OTHER regroup the elements of values of one shape alike.
bool regroup_alike(const Node& one, const Node& other, Facts& facts) {
  if (!has(one, Trait::kRegroups) || !has(other, Trait::kRegroups)) return false;
  const MaybeShape before = facts.shape(*one.inputs[0]), other_before = facts.shape(*other.inputs[0]),
                   after = facts.shape(*one.outputs[0]), other_after = facts.shape(*other.outputs[0]);
  return before && other_before && after && other_after && *before == *other_before && *after == *other_after;
}

/// Enters in AXES, which something is put in, that NODE, perhaps a Transpose, put it in others before; false if it is none.
bool enter_transpose(const Node* node, std::vector<int64_t>& axes, Facts& facts) {
  const std::vector<int64_t> perm = node ? permutation(*node, facts) : std::vector<int64_t>();
  if (perm.empty() || (!axes.empty() && axes.size() != perm.size())) return false;
  if (axes.empty())
    axes = perm;
  else
    for (int64_t& axis : axes) axis = perm[static_cast<size_t>(axis)];
  if (std::ranges::is_sorted(axes)) axes.clear();
  return true;
}

/// True if CONDITION holds where VALUE is NaN and nowhere else, both perhaps moved alike, or VALUE there and the test back.
bool asks_for_nan(const Condition& condition, Value& value, Facts& facts) {
  constexpr int kMaxMoves = 8;
  Condition seen = condition;
  bool is_tested = false;  // SEEN is what NaN is asked of
  Value* of = &canonical(value, facts);
  std::vector<int64_t> seen_axes, axes;  // since both were regrouped
  for (int step = 0; step < kMaxMoves; ++step) {
    if (Value* tested = is_tested ? nullptr : nan_where(seen, facts)) {
      seen = {tested, true};
      is_tested = true;
    }
    // A cast to another floating type keeps NaN, and makes none.
    if (is_tested) seen.value = &before_float_casts(*seen.value, facts);
    if (is_tested && seen_axes == axes && seen.value == &before_float_casts(*of, facts)) return true;
    if (!is_tested) seen = affirmed(seen, facts);
    const Node *moves = seen.value->producer, *other = of->producer;
    const bool is_transposed = enter_transpose(moves, seen_axes, facts);
    const bool is_regrouped = !is_transposed && moves && seen_axes == axes && has(*moves, Trait::kRegroups);
    const bool are_regrouped = is_regrouped && other && regroup_alike(*moves, *other, facts);
    if (is_transposed || is_regrouped) seen.value = &canonical(*moves->inputs[0], facts);
    if (are_regrouped || (!is_transposed && enter_transpose(other, axes, facts)))
      of = &canonical(*other->inputs[0], facts);
    else if (!is_transposed && !is_regrouped)
      return false;
  }
  return false;
}

/// True if a guard that KEEPS shares where CONDITION holds, or does not, keeps all but NaN.
bool hides_nan_alone(Value& condition, bool keeps, Value& shares, size_t keys_from_last, Facts& facts) {
  const auto test = shares_test(condition, shares, keys_from_last, facts);
  return test && test->holds_of_shares == keeps && test->holds_of_nan != keeps;
}

/// True if NODE leaves VALUE, shares that it reads as its input number AT, as they are. 0 times NaN is NaN.
bool is_idle(const Node& node, size_t at, Value& value, size_t keys_from_last, Facts& facts) {
  if (node.inputs.size() == 3 && node.is("Where") && at > 0) {
    const auto test =
        facts.uniform(*node.inputs[3 - at]) == 0.0 ? shares_test(*node.inputs[0], value, keys_from_last, facts) : std::nullopt;
    return test && test->holds_of_shares == (at == 1) && test->holds_of_nan == (at == 1);
  }
  const auto factor =
      node.inputs.size() == 2 && node.is("Mul") && at < 2 ? condition_of_number(*node.inputs[1 - at], facts) : std::nullopt;
  if (!factor) return false;
  const auto test = shares_test(*factor->value, value, keys_from_last, facts);
  return (test && test->holds_of_shares == factor->is_true) || asks_for_nan({factor->value, !factor->is_true}, value, facts);
}

std::optional<RowGuard> guard_at(Node& node, size_t probabilities, Value& value, size_t keys_from_last, Facts& facts) {
  if (node.is("Mul") && node.inputs.size() == 2 && probabilities < 2)
    return factor_at(node, probabilities, keys_from_last, facts);
  if (!node.is("Where") || node.inputs.size() != 3 || (probabilities != 1 && probabilities != 2)) return std::nullopt;
  Value &condition = *node.inputs[0], &otherwise = *node.inputs[3 - probabilities];
  if (facts.uniform(otherwise) != 0.0) return std::nullopt;
  const bool keeps = probabilities == 1;
  if (asks_for_nan({&condition, !keeps}, value, facts)) return RowGuard{&node, std::nullopt};
  if (hides_nan_alone(condition, keeps, value, keys_from_last, facts)) return RowGuard{&node, std::nullopt};
  if (auto test = test_of(condition, keeps, keys_from_last, facts)) return RowGuard{&node, test};
  const Condition kept = without_own_test({&condition, keeps}, keys_from_last, facts);
  return RowGuard{&node, std::nullopt, kept.value, kept.is_true};
}

/// A mask, whether it is true for the keys that stay, and the shape of what it is laid over; empty where that is not known.
struct Polarised {
  Value* mask = nullptr;
  bool keeps = false;
  Shape frame = {};
};

bool are_same(const Polarised& one, const Polarised& other, Facts& facts) {
  LaidBooleans own = laid_booleans({one.mask, one.keeps}, facts), others = laid_booleans({other.mask, other.keeps}, facts);
  if (!one.frame.empty() && !other.frame.empty()) {
    own = without_unit_axes(std::move(own), one.frame);
    others = without_unit_axes(std::move(others), other.frame);
  }
  if (!computes_same(*own.value, *others.value, facts)) return false;
  others.value = own.value;
  return own == others;
}

Polarised without_not(Value& mask, bool keeps, Facts& facts, const Shape& frame) {
  const Condition seen = affirmed({&mask, keeps}, facts);
  return {seen.value, seen.is_true, frame};
}

/// What TERM leaves of the scores that WANTED does not keep, a number that it lays over them or adds to them; nullopt if it
/// changes others.
std::optional<double> fill_beside(const Polarised& wanted, const ScoreTerm& term, FormReader& forms, Facts& facts) {
  if (term.kind != ScoreTerm::Kind::kBias) {
    const bool is_wanted =
        are_same(without_not(*term.value, term.kind == ScoreTerm::Kind::kKeep, facts, term.frame), wanted, facts);
    return is_wanted ? std::optional(term.coefficient * term.fill) : std::nullopt;
  }
  // s + (m ? 0 : f)  =>  m ? s : f, f being what absorbs scores, or what leaves them no weight
  const auto form = forms.numbers(*term.value);
  if (!form || form->size() != 2 || form->front().guard.size() != 1) return std::nullopt;
  const Literal& first = form->front().guard[0];
  const bool keeps_first = form->front().number == 0;
  const ScoreCase &kept = (*form)[keeps_first ? 0 : 1], &masked = (*form)[keeps_first ? 1 : 0];
  const double fill = term.coefficient * masked.number;
  const bool is_wanted = are_same(without_not(*first.condition, first.holds == keeps_first, facts, term.frame), wanted, facts);
  return is_wanted && kept.number == 0 && fill <= kHighestMaskFill ? std::optional(fill) : std::nullopt;
}

constexpr int kMaxGuardSteps = 8;

/// True for what stands between probabilities and what asks for them.
bool leads_to_question(const Node& node) {
  return node.is("Cast") || node.is("CastLike") || node.is("ReduceSum") || node.is("ReduceMax");
}

/// True for a reader that asks whether probabilities are infinite, or of which sign, or what they add up to.
bool tests_for_infinity(const Node& node, Facts& facts, int steps = kMaxGuardSteps) {
  if (node.is("IsInf") || node.is("Less") || node.is("Greater") || node.is("Equal")) return true;
  if (!leads_to_question(node) || !node.outputs[0] || steps == 0) return false;
  const Readers readers = readers_of(*node.outputs[0], facts);
  return std::ranges::any_of(
      readers.all, [&](const Reader& reader) { return reader.node && tests_for_infinity(*reader.node, facts, steps - 1); });
}

/// What CONDITION tells to be infinite where it HOLDS (or, if not, where it does not), seen through Casts; null if it may be
/// so elsewhere.
Value* infinite_value(Value& condition, Facts& facts, bool holds) {
  const auto found = not_finite_where({&condition, holds}, facts);
  return found && found->kind != NotFinite::Kind::kNaN ? &before_float_casts(*found->value, facts) : nullptr;
}

bool is_never_empty(Value& tested, Facts& facts) {
  return is_floating(facts.type(tested)) && !mask_contents(tested, facts).may_hold_minus_inf;
}

/// True if the guard NODE does not make the probabilities larger.
bool keeps_shape(const Node& node, Facts& facts) {
  const MaybeShape after = facts.shape(*node.outputs[0]);
  return after && std::any_of(node.inputs.begin() + (node.is("Where") ? 1 : 0), node.inputs.end(), [&](const Value* input) {
           const MaybeShape before = facts.shape(*input);
           return before && *before == *after;
         });
}

/// All that TERMS add, or nullopt if they do more than add.
std::optional<std::vector<Value*>> added_values(const std::vector<ScoreTerm>& terms, Facts& facts) {
  std::vector<Value*> all;
  for (const ScoreTerm& term : terms) {
    if (term.kind != ScoreTerm::Kind::kBias || term.coefficient != 1) return std::nullopt;
    const std::vector<Value*> own = addends_of(*term.value, facts);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

}  // namespace

std::optional<RowGuard> row_guard(const Readers& readers, Value& probabilities, size_t keys_from_last, Facts& facts) {
  for (const Reader& reader : readers.all)
    if (reader.node)
      if (auto guard = guard_at(*reader.node, static_cast<size_t>(reader.input), probabilities, keys_from_last, facts))
        return guard;
  return std::nullopt;
}

Node* idle_guard(const Readers& readers, Value& probabilities, size_t keys_from_last, Facts& facts) {
  for (const Reader& reader : readers.all)
    if (reader.node && reader.node->graph == probabilities.graph &&
        is_idle(*reader.node, static_cast<size_t>(reader.input), probabilities, keys_from_last, facts) &&
        keeps_shape(*reader.node, facts) && !others_read(readers, *reader.node, facts))
      return reader.node;
  return nullptr;
}

std::optional<RowGuard> joined(const RowGuard& before, RowGuard guard) {
  if (!before.asks_each()) return std::nullopt;
  guard.hides_nan = !guard.asks_each();
  return guard;
}

bool belongs_to_guard(const Reader& reader, const Node& guard, Facts& facts) {
  return reader.node && (reader.node == &guard || reader.node->is("IsNaN") || compares_with_itself(*reader.node, facts) ||
                         reader.reads_type_alone() || tests_for_infinity(*reader.node, facts));
}

bool others_read(const Readers& readers, const Node& guard, Facts& facts) {
  return readers.is_output ||
         std::ranges::any_of(readers.all, [&](const Reader& reader) { return !belongs_to_guard(reader, guard, facts); });
}

Node* infinity_guard(const Readers& readers, const std::vector<Value*>& probabilities, Facts& facts) {
  for (const Reader& reader : readers.all) {
    if (!reader.node || !reader.node->is("Where") || (reader.input != 1 && reader.input != 2)) continue;
    Value* infinite = infinite_value(*reader.node->inputs[0], facts, reader.input == 2);
    if (infinite && std::ranges::find(probabilities, infinite) != probabilities.end()) return reader.node;
  }
  return nullptr;
}

ScoreTerm* masked_again(const RowGuard& guard, std::vector<ScoreTerm>& terms, MatchContext& context) {
  FormReader forms(*guard.node, context);
  const Polarised wanted = without_not(*guard.mask, guard.keeps, context.facts, guard.frame);
  for (ScoreTerm& term : terms) {
    if (term.kind == ScoreTerm::Kind::kFloor) return nullptr;
    const auto fill = fill_beside(wanted, term, forms, context.facts);
    if (!fill) continue;
    term.fill = *fill;
    term.coefficient = 1;
    if (term.kind != ScoreTerm::Kind::kBias && term.frame != wanted.frame) return &term;  // where its own mask lies as it does
    term.value = wanted.mask;
    if (!wanted.frame.empty()) term.frame = wanted.frame;
    term.kind = wanted.keeps ? ScoreTerm::Kind::kKeep : ScoreTerm::Kind::kDrop;
    return &term;
  }
  return nullptr;
}

Matched<GuardMeaning> meaning_of_guard(const RowGuard& guard, const std::vector<ScoreTerm>& terms, Facts& facts) {
  Value& tested = *guard.test->rows;
  if (is_never_empty(tested, facts) && keeps_shape(*guard.node, facts)) return GuardMeaning::kNothing;
  auto added = added_values(terms, facts);
  std::vector<Value*> wanted = addends_of(tested, facts);
  if (added) {
    std::sort(added->begin(), added->end());
    std::ranges::sort(wanted);
    if (*added == wanted) return GuardMeaning::kEmptyRows;
  }
  return missed("probabilities.guard", guard.node, "'" + tested.name + "' is not the sum of what was added to the scores");
}

}  // namespace attn_opt
