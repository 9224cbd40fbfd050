#include "patterns/preconditions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include "attn_opt/canonical.h"
#include "attn_opt/internal/mask_contents.h"
#include "patterns/bias_preconditions.h"
#include "patterns/scores/fills.h"
#include "src/io/number_text.h"
#include "src/match/facts/empty_rows.h"

namespace attn_opt {
namespace {

/// True if scores are cast to a type of less range than theirs and the product's, and back: a finite one may be infinite there.
/// ONNX Runtime leaves such casts out.
bool have_less_range_by_cast(const Sdpa& sdpa, Facts& facts) {
  const double lowest = lowest_finite(range_of_scores(sdpa));
  return lowest > lowest_finite(sdpa.type) && lowest > lowest_finite(facts.type(*sdpa.q.views[0].value));
}

/// Scores that are not finite under a mask that is added make NaN, which a guard makes 0: hidden, NaN becomes a number alone.
std::optional<Precondition> scores_finite(const Sdpa& sdpa, Facts& facts) {
  constexpr const char* kId = "scores-finite";
  if (sdpa.hides_nan) return Precondition{kId, false, "a guard makes NaN 0"};
  const auto is_laid_over = [](const ScoreTerm& term) { return is_fill(term) && !term.is_added; };
  if (std::ranges::any_of(sdpa.terms, is_laid_over)) return Precondition{kId, false, "a Where hides masked scores"};
  if (sdpa.less_largest_of_all) return Precondition{kId, false, "the largest of all scores is subtracted from each"};
  if (have_less_range_by_cast(sdpa, facts))
    return Precondition{kId, false, "scores are cast to " + type_name(range_of_scores(sdpa)) + ", whose range they may leave"};
  if (std::ranges::none_of(sdpa.terms, &ScoreTerm::is_added)) return std::nullopt;
  return Precondition{kId, false, "masked scores are hidden, which the model adds -inf to", true};
}

/// True if FILL swallows any score, in the operator too: many runtimes compute with halves in float, where no half does.
bool absorbs_anywhere(double fill, DataType type) { return type != onnx::TensorProto::FLOAT16 && fill <= absorbing_fill(type); }

/// True if TERM lays a fill over scores that leaves a trace of them where it is added.
bool is_shallow_fill(const ScoreTerm& term, DataType type) {
  return is_fill(term) && std::isfinite(term.fill) && !absorbs_anywhere(term.fill, type);
}

/// True if exp(), taken of scores that are not lowered, may be 0 of all that TERM is added to.
bool may_vanish(const ScoreTerm& term, Facts& facts) {
  constexpr double kVanishing = -100;
  if (term.kind != ScoreTerm::Kind::kBias) return false;
  const MaskContents contents = mask_contents(*term.value, facts);
  return contents.may_hold_lowest ||
         !(std::min(term.coefficient * contents.least, term.coefficient * contents.greatest) > kVanishing);
}

/// True if TERM, added in a half type, takes the digits of scores that it hides and that the model keeps.
bool loses_hidden_scores(const ScoreTerm& term, DataType type, Facts& facts) {
  if (!term.adds_in_float || element_size(type) > 2 || term.kind != ScoreTerm::Kind::kBias || keeps_first_key(term))
    return false;
  const MaskContents contents = mask_contents(*term.value, facts);
  return contents.may_hold_lowest || contents.least <= kHiding;
}

/// True if TERM hides scores with a number that is -inf in a narrower type alone, which the scores are cast to and back.
bool is_infinite_by_cast(const ScoreTerm& term, const Sdpa& sdpa, Facts& facts) {
  if (!have_less_range_by_cast(sdpa, facts) || term.kind == ScoreTerm::Kind::kFloor || keeps_first_key(term)) return false;
  const double lowest = lowest_finite(range_of_scores(sdpa));
  if (!is_bias(term)) return std::isfinite(term.fill) && term.coefficient * term.fill < lowest;
  const MaskContents contents = mask_contents(*term.value, facts);
  const double least = std::min(term.coefficient * contents.least, term.coefficient * contents.greatest);
  return contents.may_hold_lowest || (least < lowest && contents.least <= contents.greatest);
}

/// Why a row that keeps no key may have other numbers as weights; empty if it has not.
std::string why_weights_may_change(const Sdpa& sdpa, Facts& facts) {
  if (sdpa.clamp && !std::ranges::all_of(sdpa.terms, keeps_first_key)) return "a clamp gives masked keys other weights";
  if (has_floor(sdpa)) {
    const double floor = sdpa.terms.back().fill;
    const bool keeps_keys = std::all_of(sdpa.terms.begin(), sdpa.terms.end() - 1, keeps_first_key);
    if (keeps_keys || absorbs_anywhere(floor, sdpa.type)) return "";
    return "the floor " + number_text(floor) + " does not absorb the scores";
  }
  for (const ScoreTerm& term : sdpa.terms) {
    if (sdpa.exponent_offset && sdpa.guarded && may_vanish(term, facts))
      return "a guard makes rows 0 that '" + term.value->name + "' takes out of the range of exp()";
    if (loses_hidden_scores(term, sdpa.type, facts))
      return "'" + term.value->name + "' is added in float, and " + type_name(sdpa.type) + " keeps nothing of scores beside it";
    if (sdpa.type == onnx::TensorProto::FLOAT16 && is_bias(term) && !keeps_first_key(term) &&
        may_be_narrowed(*term.value, facts))
      return "'" + term.value->name + "' is cast to float16, and a runtime may keep numbers that are -inf there";
    if (is_infinite_by_cast(term, sdpa, facts))
      return "'" + term.value->name + "' is -inf in a type that scores are cast to, which a runtime may leave out";
    if (is_shallow_bias(term, sdpa, facts))
      return "'" + term.value->name + "' is added in " + type_name(sdpa.type) +
             (element_size(sdpa.type) == 2 ? ", of which a runtime may keep more digits than another"
                                           : ", which rounds a row of it by the order of the sums");
    if (is_fill(term) && std::isfinite(term.fill) && term.fill < lowest_finite(sdpa.type) && !keeps_first_key(term))
      return "fill " + number_text(term.fill) + " is -inf in " + type_name(sdpa.type);
    if (is_shallow_fill(term, sdpa.type)) return "fill " + number_text(term.fill) + " does not absorb the scores";
  }
  return "";
}

/// True if a term may hold the lowest half, which scores that are added to it take to -inf: by the order of the sums a row is
/// then without a key, or one key of it has all the weight.
bool adds_up_in_halves(const Sdpa& sdpa, Facts& facts) {
  return sdpa.type == onnx::TensorProto::FLOAT16 && std::ranges::any_of(sdpa.terms, [&](const ScoreTerm& term) {
           if (term.kind == ScoreTerm::Kind::kBias) return mask_contents(*term.value, facts).may_hold_lowest;
           return term.kind != ScoreTerm::Kind::kFloor && std::isfinite(term.fill);
         });
}

std::optional<Precondition> rows_keep_a_key(const Sdpa& sdpa, Facts& facts) {
  if (sdpa.terms.empty()) return std::nullopt;
  if (const std::string why = why_weights_may_change(sdpa, facts); !why.empty())
    return Precondition{"rows-keep-a-key", false, why};
  const std::string why = why_rows_may_be_nan(sdpa, facts);
  if (why.empty() || (sdpa.guarded && !adds_up_in_halves(sdpa, facts)))
    return Precondition{"rows-keep-a-key", true, sdpa.guarded ? "a guard makes empty rows 0" : "no mask empties a row"};
  if (sdpa.guarded)
    return Precondition{"rows-keep-a-key", false, "a guard makes rows 0 that scores beside the lowest float16 take to -inf"};
  return Precondition{"rows-keep-a-key", false, why, !adds_up_in_halves(sdpa, facts)};
}

/// exp() of this, and of its negative, is a number of TYPE that thousands of may be added up.
double safe_exponent(DataType type) { return type == onnx::TensorProto::FLOAT16 ? 0 : 70; }

std::optional<Precondition> exp_in_range(const Sdpa& sdpa) {
  if (!sdpa.exponent_offset) return std::nullopt;
  const double offset = *sdpa.exponent_offset;
  const bool keeps_a_key = std::ranges::all_of(sdpa.terms, keeps_first_key);
  const double range = std::min(safe_exponent(sdpa.type), sdpa.exponent_range);
  if (keeps_a_key && sdpa.softcap > 0 && sdpa.softcap + std::abs(offset) <= range)
    return Precondition{"exp-in-range", true, "a softcap bounds the scores"};
  if (std::isfinite(sdpa.exponent_range))
    return Precondition{"exp-in-range", false,
                        "a small number is added to what is left of each row, or is the least of its sums"};
  return Precondition{"exp-in-range", false, "exp() is taken of scores that are not lowered by the largest of their row"};
}

std::optional<Precondition> scores_within_clamp(const Sdpa& sdpa) {
  if (!sdpa.clamp) return std::nullopt;
  return Precondition{"scores-within-clamp", false, "scores are clamped at " + number_text(*sdpa.clamp)};
}

/// Kept scores as low as a fill that is added to the masked ones weigh less in the model than in the operator.
std::optional<Precondition> scores_above_fill(const Sdpa& sdpa) {
  const auto is_reached = [&](const ScoreTerm& term) {
    return is_shallow_fill(term, sdpa.type) && term.fill > 0.99 * lowest_finite(sdpa.type);
  };
  const auto term = std::ranges::find_if(sdpa.terms, is_reached);
  if (term == sdpa.terms.end()) return std::nullopt;
  return Precondition{"scores-above-fill", false, "masked keys have " + number_text(term->fill) + " in the softmax"};
}

/// A factor up to this takes what it is moved to out of the range of its type in no model that works.
double harmless_factor(DataType type) { return type == onnx::TensorProto::FLOAT16 ? 1 : 1e6; }

/// What SCALE multiplies with at most; nullopt if it is not known.
std::optional<double> largest_factor(const TensorScale& scale, Facts& facts) {
  const Tensor* numbers = facts.constant(*scale.value);
  if (!numbers) {
    const MaskContents contents = mask_contents(*scale.value, facts);
    const double largest = std::max(std::abs(contents.least), std::abs(contents.greatest));
    const bool is_known = !scale.divides && !contents.may_hold_lowest && !contents.may_hold_minus_inf && std::isfinite(largest);
    return is_known ? std::optional(largest) : std::nullopt;
  }
  const auto doubles = numbers->cast(onnx::TensorProto::DOUBLE);
  if (!doubles) return std::nullopt;
  double largest = 0;
  for (const double number : doubles->data<double>())
    largest = std::max(largest, std::abs(scale.divides ? 1 / number : number));
  return largest;
}

/// The least factor among the views of OPERAND, at most 1, and the largest, at least 1.
std::pair<double, double> factors_of(const Operand& operand) {
  std::pair<double, double> ends{1, 1};
  for (const OperandView& view : operand.views)
    ends = {std::min(ends.first, std::abs(view.scale)), std::max(ends.second, std::abs(view.scale))};
  return ends;
}

/// A scale below this makes scores of ordinary size of operands whose product has left the range of float, or is 0 there.
constexpr double kLeastScale = 1e-6;

/// What is written multiplies Q K^T, or Q and K, with the whole scale: the model may have made them small first.
std::optional<Precondition> scale_not_small(const Sdpa& sdpa) {
  const double scale = std::abs(sdpa.scale) * factors_of(sdpa.q).first * factors_of(sdpa.k).first;
  if (!(scale < kLeastScale) || sdpa.scale == 0) return std::nullopt;
  return Precondition{"factors-in-range", false, number_text(scale) + " is what the product of Q and K is multiplied with"};
}

void add_symbols(MaybeShape shape, std::set<std::string>& symbols) {
  if (!shape) return;
  for (const Dim& dim : *shape)
    for (const AtomRef& atom : dim.atoms()) symbols.insert(atom->name);
}

std::vector<Value*> operands_and_terms(const Sdpa& sdpa) {
  std::vector<Value*> values;
  for (const Operand* operand : {&sdpa.q, &sdpa.k, &sdpa.v}) values.push_back(operand->views[0].value);
  for (const ScoreTerm& term : sdpa.terms) values.push_back(term.value);
  return values;
}

/// The size that is not 0 where x - 1 = max(0, x - 1); nullopt if EQUATION is another.
std::optional<Dim> size_not_0(const SizeAssumption& equation) {
  const auto is_of = [](const Dim& less, const Dim& greatest) {
    return greatest == maximum(0, less) && (less + 1).never_negative();
  };
  if (is_of(equation.one, equation.other)) return equation.one + 1;
  if (is_of(equation.other, equation.one)) return equation.other + 1;
  return std::nullopt;
}

void add_assumed_sizes(const Sdpa& sdpa, Facts& facts, std::vector<Precondition>& found) {
  if (facts.assumptions().empty()) return;
  std::set<std::string> symbols;
  const std::vector<Value*> read = operands_and_terms(sdpa);
  for (const Value* value : read) add_symbols(facts.shape(*value), symbols);
  for (const SizeAssumption* assumption : facts.assumptions_about(symbols)) {
    const bool is_proven = facts.proves(*assumption, read);
    const auto not_0 = is_proven ? std::nullopt : size_not_0(*assumption);
    if (not_0)
      found.push_back({std::string(kSizesNotEmpty), false, not_0->str()});
    else
      found.push_back({std::string(kSizesEqual), is_proven, assumption->one.str() + " = " + assumption->other.str()});
  }
}

/// True if TERM, of SDPA, is a constant that leaves some row no key in each run.
bool empties_a_row(const ScoreTerm& term, Facts& facts) {
  const Tensor* mask = term.kind == ScoreTerm::Kind::kFloor || keeps_first_key(term) ? nullptr : facts.constant(*term.value);
  if (!mask || mask->rank() == 0 || mask->size() == 0) return false;
  const auto numbers = mask->cast(onnx::TensorProto::DOUBLE);
  if (!numbers) return false;
  const auto is_hidden = [&](double number) {
    if (is_bias(term)) return term.coefficient * number <= kHiding;
    return (number != 0) == (term.kind == ScoreTerm::Kind::kDrop);
  };
  const std::span<const double> all = numbers->data<double>();
  const auto keys = static_cast<size_t>(mask->dims().back());
  for (size_t row = 0; row < all.size(); row += keys)
    if (std::ranges::all_of(all.subspan(row, keys), is_hidden)) return true;
  return false;
}

Matched<void> check_rows_of_constants(const Sdpa& sdpa, MatchContext& context) {
  if (sdpa.terms.empty()) return {};
  // A row of nothing but a fill is even, in the operator too; what is added below the fill is not.
  bool of_all = false, of_biases = false;
  for (const Precondition& condition : sdpa.preconditions) {
    if (condition.proven || condition.is_refinement) continue;
    of_all |= condition.id == "rows-keep-a-key";
    of_biases |= condition.id == "scores-above-fill";
  }
  if (!of_all && !of_biases) return {};
  for (const ScoreTerm& term : sdpa.terms)
    if ((of_all || (of_biases && is_bias(term))) && empties_a_row(term, context.facts))
      return missed(
          "scores.empty-row", term.value->uses.empty() ? nullptr : term.value->uses.front().node,
          "'" + term.value->name + "' leaves a row no key in each run, and what its weights are depends on how it is computed");
  return {};
}

Matched<void> check_no_plus_inf(const Sdpa& sdpa, MatchContext& context) {
  if (!sdpa.hides_nan) return {};
  for (const ScoreTerm& term : sdpa.terms) {
    const Node* where = canonical(*term.value, context.facts).producer;
    if (term.kind != ScoreTerm::Kind::kBias || !where || !where->is("Where")) continue;
    for (const size_t branch : {1, 2}) {
      const auto added = context.facts.uniform(*where->inputs[branch]);
      if (added && *added * term.coefficient == std::numeric_limits<double>::infinity())
        return missed("scores.plus-inf", where, "+inf is added to scores, and a guard hides the NaN that comes of it");
    }
  }
  return {};
}

}  // namespace

Matched<void> check_masks(const Sdpa& sdpa, MatchContext& context) {
  ATTN_OPT_DONE(check_rows_of_constants(sdpa, context));
  return check_no_plus_inf(sdpa, context);
}

std::optional<Precondition> factors_in_range(double factor, const std::vector<TensorScale>& scales, DataType type,
                                             const std::string& operand, Facts& facts) {
  constexpr const char* kId = "factors-in-range";
  for (const TensorScale& scale : scales) {
    const auto largest = largest_factor(scale, facts);
    if (!largest)
      return Precondition{kId, false, "'" + scale.value->name + "', known in a run alone, is a factor of " + operand};
    factor *= *largest;
  }
  if (factor <= harmless_factor(type)) return std::nullopt;
  return Precondition{kId, false, number_text(factor) + " is a factor of " + operand};
}

std::optional<Precondition> rows_keep_a_key_of_kernel(const Sdpa& sdpa, Facts& facts) {
  for (const ScoreTerm& term : sdpa.terms) {
    if (!is_bias(term) || keeps_first_key(term)) continue;
    const MaskContents contents = mask_contents(*term.value, facts);
    if (contents.may_hold_lowest)
      return Precondition{
          "rows-keep-a-key", false,
          "'" + term.value->name + "' may hold the lowest number, which one kernel takes for -inf and one does not"};
    if (element_size(sdpa.type) == 2 && contents.least <= kHiding)
      return Precondition{
          "rows-keep-a-key", false,
          "'" + term.value->name + "' is added in " + type_name(sdpa.type) + " by one kernel and in float by one"};
  }
  return std::nullopt;
}

std::vector<Precondition> preconditions_of(const Sdpa& sdpa, MatchContext& context) {
  std::vector<Precondition> found;
  if (auto finite = scores_finite(sdpa, context.facts)) found.push_back(*finite);
  if (auto rows = rows_keep_a_key(sdpa, context.facts)) found.push_back(*rows);
  if (auto range = exp_in_range(sdpa)) found.push_back(*range);
  if (auto within = scores_within_clamp(sdpa)) found.push_back(*within);
  if (auto small = biases_small(sdpa, context.facts)) found.push_back(*small);
  if (auto above = scores_above_fill(sdpa)) found.push_back(*above);
  const double factor = std::abs(sdpa.scale) * factors_of(sdpa.q).second * factors_of(sdpa.k).second;
  if (auto factors = factors_in_range(factor, sdpa.tensor_scales, sdpa.type, "Q or K", context.facts))
    found.push_back(*factors);
  else if (auto small = scale_not_small(sdpa))
    found.push_back(*small);
  add_assumed_sizes(sdpa, context.facts, found);
  return found;
}

bool is_known_finite(const Value& value, Facts& facts) {
  const Tensor* constant = facts.constant(value);
  const auto numbers = constant ? constant->cast(onnx::TensorProto::DOUBLE) : Expected<Tensor>(Tensor());
  return constant && numbers &&
         std::ranges::all_of(numbers->data<double>(), [](double number) { return std::isfinite(number); });
}

void assume(const std::string& id, std::string detail, Sdpa& sdpa) {
  // That exp() stays in its range is assumed only of scores that are not lowered before.
  if (id == "exp-in-range" && !sdpa.exponent_offset) sdpa.exponent_offset = 0;
  sdpa.preconditions.push_back({id, false, std::move(detail)});
}

void assume_scores_finite(std::string detail, Sdpa& sdpa) {
  const std::string id = "scores-finite";
  const bool is_assumed = std::ranges::any_of(sdpa.preconditions, [&id](const Precondition& condition) {
    return condition.id == id && !condition.proven && !condition.is_refinement;
  });
  if (!is_assumed) assume(id, std::move(detail), sdpa);
}

}  // namespace attn_opt
