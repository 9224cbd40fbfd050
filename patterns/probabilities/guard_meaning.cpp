#include "patterns/probabilities/guard_meaning.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/internal/mask_contents.h"
#include "patterns/preconditions.h"
#include "patterns/scores/conditions.h"
#include "patterns/softmax/row_reduction.h"
#include "src/io/number_text.h"

namespace attn_opt {
namespace {

Shape without_unit_axes(Shape shape) {
  std::erase_if(shape, [](const Dim& size) { return size.is(1); });
  return shape;
}

/// True if the mask of GUARD broadcasts to the axes that TERM has over the scores of READING, whose leading axes may be
/// regrouped above or below it.
bool lies_alike(const ScoreTerm& term, const RowGuard& guard, const Reading& reading, const ScoreLayout& layout) {
  if (reading.scores.frames.empty()) return true;
  const auto& split = reading.probabilities.row_split;
  const bool has_axes =
      !guard.frame.empty() && without_unit_axes(guard.frame) == without_unit_axes(split ? split->parts : term.frame);
  return has_axes && layout.order.empty() && !reading.probabilities.guard_transposed;
}

/// The mask of READING that GUARD repeats, with the fill of both; null if there is none. Where rows are regrouped behind the
/// guard, it repeats what the mask was made of.
ScoreTerm* repeated_mask(const RowGuard& guard, Reading& reading, MatchContext& context) {
  std::vector<ScoreTerm>& terms = reading.scores.terms;
  if (!reading.probabilities.row_split) return masked_again(guard, terms, context);
  for (ScoreTerm& term : terms) {
    if (term.kind == ScoreTerm::Kind::kFloor) return nullptr;
    if (term.parts.values.size() != 1) continue;
    std::vector<ScoreTerm> above{term};
    above[0].value = term.parts.values[0];
    const ScoreTerm* repeated = masked_again(guard, above, context);
    if (!repeated) continue;
    if (term.kind == ScoreTerm::Kind::kBias) {  // it hides the keys as it is, but for what is not finite among their scores
      if (std::isfinite(repeated->fill) || !context.accepted.accepts("scores-finite")) continue;
      reading.overlooked = "by '" + guard.mask->name + "', whatever their scores are";
      return &term;
    }
    term.fill = repeated->fill;
    term.coefficient = repeated->coefficient;
    return &term;
  }
  return nullptr;
}

/// True if no score is below TERM, a floor over OTHERS: its number is the lowest of TYPE, and they hold no -inf.
bool is_idle_floor(const ScoreTerm& term, std::span<const ScoreTerm> others, DataType type, Facts& facts) {
  if (term.kind != ScoreTerm::Kind::kFloor || term.coefficient * term.fill > lowest_finite(type)) return false;
  return std::ranges::all_of(others, [&](const ScoreTerm& other) {
    return other.kind == ScoreTerm::Kind::kBias ? !mask_contents(*other.value, facts).may_hold_minus_inf
                                                : std::isfinite(other.fill);
  });
}

/// The mask of READING that GUARD repeats, which leaves a row without keys nothing, whatever a floor leaves it in the softmax.
ScoreTerm* repeated_above_floor(const RowGuard& guard, Reading& reading, MatchContext& context) {
  std::vector<ScoreTerm>& terms = reading.scores.terms;
  const DataType type = context.facts.type(*reading.scores.value);
  if (terms.empty() || !is_idle_floor(terms[0], std::span(terms).subspan(1), type, context.facts))
    return repeated_mask(guard, reading, context);
  const ScoreTerm floor = terms[0];
  terms.erase(terms.begin());
  if (ScoreTerm* repeated = repeated_mask(guard, reading, context)) return repeated;
  terms.insert(terms.begin(), floor);
  return nullptr;
}

/// LAYOUT, that of what the softmax makes, where the guard of WALK stands.
ScoreLayout layout_at_guard(const ProbabilityWalk& walk, const ScoreLayout& layout, MatchContext& context) {
  const MaybeShape made = context.facts.shape(*walk.way.front());
  return walk.guard_perm.empty() || !made ? layout : layout.behind_moves(walk.guard_perm, made->size());
}

/// A mask that is laid over the probabilities too: a fill that leaves masked keys some weight is -inf.
Matched<GuardMeaning> read_mask_above(RowGuard guard, Reading& reading, const ScoreLayout& at_softmax, MatchContext& context) {
  const ProbabilityWalk& walk = reading.probabilities;
  const ScoreLayout layout = layout_at_guard(walk, at_softmax, context);
  const Condition kept = affirmed({guard.mask, guard.keeps}, context.facts);
  guard.mask = kept.value;
  guard.keeps = kept.is_true;
  // Behind a Transpose the mask lies otherwise than it did over the scores.
  Value* mask = walk.guard_transposed ? guard.mask : placed(*guard.mask, layout, *walk.product, context);
  if (mask) guard.mask = mask;
  const MaybeShape guarded = context.facts.shape(*guard.node->outputs[0]);
  const bool has_layout = guarded && !walk.guard_transposed && layout.rank() == guarded->size();
  if (guarded) guard.frame = has_layout ? layout.placed(*guarded) : *guarded;
  ScoreTerm* term = repeated_above_floor(guard, reading, context);
  if (!term || !lies_alike(*term, guard, reading, layout))
    return missed("probabilities.mask", guard.node, "'" + guard.mask->name + "' masks no scores", reading.probabilities.peeled);
  const bool is_alone = reading.scores.terms.size() == 1;
  const bool absorbs = term->fill <= absorbing_fill(context.facts.type(*reading.score_product.query.value));
  if (std::isfinite(term->fill) && !(is_alone && absorbs)) reading.fill_above = term->fill;
  // A row that a factor leaves nothing of stays NaN where the softmax makes it so.
  const bool empties_rows = guard.node->is("Where") || std::isfinite(term->fill);
  reading.deepens_fill = std::isfinite(term->fill);
  term->fill = -std::numeric_limits<double>::infinity();
  return is_alone && empties_rows ? GuardMeaning::kEmptyRows : GuardMeaning::kNothing;
}

/// True if MASK, floating, may hold NaN, for all that is known before a run.
bool may_hold_nan(Value& mask, Facts& facts) {
  return is_floating(facts.type(mask)) && mask_contents(mask, facts).may_hold_nan;
}

/// What was laid over the scores where the guard of READING stands: above rows that are regrouped behind it, what its terms
/// are made of.
std::vector<ScoreTerm> terms_at_guard(const Reading& reading) {
  if (!reading.probabilities.row_split) return reading.scores.terms;
  std::vector<ScoreTerm> terms;
  for (const ScoreTerm& term : reading.scores.terms)
    for (Value* part : term.parts.values) {
      terms.push_back(term);
      terms.back().value = part;
    }
  return terms;
}

/// What GUARD, which asks numbers of each row, means. One that hides NaN of a mask is none where that may not be assumed.
Matched<GuardMeaning> meaning_of_numbers(const RowGuard& guard, Reading& reading, MatchContext& context) {
  Value& asked = *guard.test->rows;
  ATTN_OPT_MATCH(const GuardMeaning meaning, meaning_of_guard(guard, terms_at_guard(reading), context.facts));
  if (!guard.test->overlooks_nan || !may_hold_nan(asked, context.facts)) return meaning;
  if (!context.accepted.accepts("scores-finite"))
    return missed("probabilities.guard", guard.node, "rows of '" + asked.name + "' that are NaN become 0",
                  reading.probabilities.peeled);
  reading.overlooked = "of which '" + asked.name + "' is NaN";
  return meaning;
}

/// The scores in SOFTMAX_INPUT, in which the sinks that READING cuts off stand beside them; that where there are none.
Value& beside_sinks(Value& softmax_input, const Reading& reading, Facts& facts) {
  const auto& sinks = reading.probabilities.sinks;
  const Node* joint = canonical(softmax_input, facts).producer;
  if (!sinks || !joint || !joint->is("Concat") || joint->inputs.size() != 2) return softmax_input;
  Value &first = *joint->inputs[0], &second = *joint->inputs[1];
  const MaybeShape columns = facts.shape(sinks->in_front != 0 ? first : second);
  if (!columns || !columns->back().is(sinks->in_front + sinks->behind)) return softmax_input;
  return sinks->in_front != 0 ? second : first;
}

/// True if GUARD asks the scores themselves. Sinks beside them leave a row without keys nothing but 0.
bool asks_scores(const RowGuard& guard, const Reading& reading, Value& softmax_input, Facts& facts) {
  if (!guard.test || !guard.test->is_number) return false;
  Value& scores = before_float_casts(beside_sinks(before_float_casts(softmax_input, facts), reading, facts), facts);
  return &before_float_casts(*guard.test->rows, facts) == &scores;
}

/// What GUARD asks of the scores, or of the masks laid over them.
Matched<GuardMeaning> meaning_in(const RowGuard& guard, Reading& reading, const ScoreLayout& layout, Value& softmax_input,
                                 MatchContext& context) {
  const std::vector<std::string>& peeled = reading.probabilities.peeled;
  if (guard.mask) return read_mask_above(guard, reading, layout, context);
  if (!guard.test || asks_scores(guard, reading, softmax_input, context.facts)) return GuardMeaning::kScores;
  if (!reading.scores.frames.empty() && !reading.probabilities.row_split)
    return missed("probabilities.guard", guard.node, "the scores are regrouped above it", peeled);
  if (guard.test->is_number) return meaning_of_numbers(guard, reading, context);
  if (reading.scores.terms.size() != 1)
    return missed("probabilities.guard", guard.node, "not all masks are in '" + guard.test->rows->name + "'", peeled);
  return read_mask_above({guard.node, std::nullopt, guard.test->rows, guard.test->keeps}, reading, layout, context);
}

/// The guard of Y's rows, which lie in front of the features; nullopt unless it is all that reads Y.
std::optional<RowGuard> guard_of_output(const ProductSide& output, Facts& facts) {
  const auto& roles = output.roles;
  if (!output.order.empty() || roles.size() < 2 || roles[roles.size() - 2] != Role::kRow) return std::nullopt;
  const Readers readers = readers_of(*output.value, facts);
  auto guard = row_guard(readers, *output.value, 0, facts);
  if (!guard || guard->mask || others_read(readers, *guard->node, facts)) return std::nullopt;
  const MaybeShape before = facts.shape(*output.value), after = facts.shape(*guard->node->outputs[0]);
  if (!before || !after || *before != *after) return std::nullopt;
  return guard;
}

/// True if TERMS are one mask of -inf.
bool empties_rows_alone(const std::vector<ScoreTerm>& terms) {
  if (terms.size() != 1) return false;
  const bool selects = terms[0].kind == ScoreTerm::Kind::kKeep || terms[0].kind == ScoreTerm::Kind::kDrop;
  return selects && terms[0].fill == -std::numeric_limits<double>::infinity();
}

/// True for a guard that asks the mask, not the scores: what is not finite of those it then hides.
bool hides_scores(const RowGuard& guard) { return guard.mask || (guard.test && !guard.test->is_number); }

/// A guard behind the product means what it would mean in front of it; one that means something else stays, or would have
/// scores assumed finite that may not be.
GuardMeaning read_guard_behind(Reading& reading, const ScoreLayout& layout, Value& softmax_input, MatchContext& context) {
  ProductSide& output = reading.value_product.output;
  const auto guard = reading.probabilities.steps.empty() ? guard_of_output(output, context.facts) : std::nullopt;
  if (!guard || (hides_scores(*guard) && !context.accepted.accepts("scores-finite"))) return GuardMeaning::kNothing;
  const auto meaning = meaning_in(*guard, reading, layout, softmax_input, context);
  if (!meaning) return GuardMeaning::kNothing;
  output.value = guard->node->outputs[0];
  reading.probabilities.peeled.emplace_back("Where(rows)");
  return *meaning;
}

}  // namespace

/// NaN is made 0 where all scores are -inf, and a guard that tests for NaN does no less. One that tests for something else is a
/// step.
Matched<GuardMeaning> read_guard(Reading& reading, const ScoreLayout& layout, const SoftmaxSite& softmax,
                                 MatchContext& context) {
  const auto& guard = reading.probabilities.guard;
  if (softmax.guards_nan && !guard) return GuardMeaning::kScores;
  if (!guard) {
    const GuardMeaning behind = read_guard_behind(reading, layout, *softmax.input, context);
    if (softmax.guards_empty_rows && reading.overlooked.empty())
      reading.overlooked =
          "whose scores are all " + (has_finite_bound(softmax, context.facts) ? "below " + number_text(softmax.bound) : "-inf");
    return behind == GuardMeaning::kNothing && softmax.guards_empty_rows && empties_rows_alone(reading.scores.terms)
               ? GuardMeaning::kEmptyRows
               : behind;
  }
  auto meaning = meaning_in(*guard, reading, layout, *softmax.input, context);
  const auto& step = reading.probabilities.guard_step;
  if (!meaning && !step) return meaning;
  if (!meaning) reading.probabilities.steps.insert(reading.probabilities.steps.begin(), *step);
  if (guard->hides_nan) return GuardMeaning::kScores;
  return meaning ? *meaning : GuardMeaning::kNothing;
}

void assume_of_guard(const Reading& reading, Sdpa& sdpa) {
  if (!reading.overlooked.empty()) assume_scores_finite("a guard makes rows 0 " + reading.overlooked, sdpa);
}

std::optional<double> fill_that_scores_stay_above(const Reading& reading) {
  if (reading.fill_above || !(reading.scores.lowered || reading.scores.clamp || reading.scores.lies_above_fill))
    return reading.fill_above;
  for (const ScoreTerm& term : reading.scores.terms)
    if ((term.kind == ScoreTerm::Kind::kKeep || term.kind == ScoreTerm::Kind::kDrop) && std::isfinite(term.fill))
      return term.fill;
  return std::nullopt;
}

}  // namespace attn_opt
