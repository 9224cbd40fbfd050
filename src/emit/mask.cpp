#include "src/emit/mask.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "attn_opt/canonical.h"
#include "attn_opt/internal/mask_contents.h"
#include "attn_opt/operator_traits.h"
#include "src/emit/equal_sizes.h"
#include "src/emit/frame.h"
#include "src/emit/joint_sizes.h"
#include "src/emit/mask_bounds.h"
#include "src/match/facts/empty_rows.h"

namespace attn_opt {
namespace {

/// Hides keys as the lowest float16 does, beside which scores and biases below 16 are lost as well; another bias may be added.
constexpr double kHidesInHalf = -49152;

struct FloatMask {
  Placed placed;
  double least = 0;  ///< at most 0, and no finite element lies below it
};

Matched<Shape> shape_of_term(const ScoreTerm& term, Site& site) {
  const MaybeShape taken = site.facts.shape(*term.value);
  if (!taken) return missed("emit.mask-shape", term.value->producer, "'" + term.value->name + "' is of unknown rank");
  Shape shape = *taken;
  join_equals(shape, *term.value, site.facts);
  return shape;
}

/// True where a row without a key gives 0 in the model too, so that -inf may be said with a bool mask.
bool empty_rows_give_zero(const Site& site) { return site.sdpa.guarded || site.match_lists("rows-keep-a-key"); }

/// A bool mask shows in the scores as -inf in some runtimes and as the lowest number in others: one that the operator has in
/// the model already shows as it did.
bool may_be_bool(const Site& site) {
  if (site.guards_nan) return false;
  const bool shows_alike = site.target.shows_masked_scores || site.match.anchor->is("Attention");
  return site.target.takes_bool_masks && (shows_alike || !site.shows_masked_scores());
}

bool is_bool_mask(const std::vector<const ScoreTerm*>& terms, const Site& site) {
  if (!may_be_bool(site)) return false;
  if (terms.size() != 1 || terms[0]->kind == ScoreTerm::Kind::kBias) return false;
  return terms[0]->coefficient * terms[0]->fill == -INFINITY && empty_rows_give_zero(site);
}

Matched<Placed> write_bool_mask(const ScoreTerm& term, Site& site) {
  ATTN_OPT_MATCH(const Shape shape, shape_of_term(term, site));
  Placed condition{term.value, shape};
  if (term.kind == ScoreTerm::Kind::kDrop) condition.value = site.build.node("Not", {condition.value});
  return to_scores_frame(std::move(condition), term.frame, site);
}

/// True if TERM, a bias in float16, may hold the lowest number, but not -inf, and another holds more than masks do. That makes
/// -inf of it, or, where a runtime adds in float, a number beyond the lowest, which is -inf in the node: a row of it is empty.
bool is_lost_in_sum(const ScoreTerm& term, Site& site) {
  if (site.sdpa.type != onnx::TensorProto::FLOAT16 || term.coefficient != 1 || site.shows_masked_scores()) return false;
  const MaskContents contents = mask_contents(*term.value, site.facts);
  if (!contents.may_hold_lowest || contents.may_hold_minus_inf) return false;
  return std::ranges::any_of(site.sdpa.terms, [&](const ScoreTerm& other) {
    if (&other == &term || other.kind != ScoreTerm::Kind::kBias) return false;
    const MaskContents added = mask_contents(*other.value, site.facts);
    return added.least != 0 || added.greatest != 0;
  });
}

/// MASK times the coefficient of TERM.
FloatMask scaled(FloatMask mask, const ScoreTerm& term, Site& site) {
  const DataType type = site.sdpa.type;
  const MaskContents contents = mask_contents(*term.value, site.facts);
  const bool is_none_or_extreme = contents.least > contents.greatest || (contents.least == 0 && contents.greatest == 0);
  mask.placed.value = is_none_or_extreme ? site.build.scaled(mask.placed.value, term.coefficient, type)
                                         : site.build.scaled_exactly(mask.placed.value, term.coefficient, type);
  if (!is_held_in_type(term, contents, type)) return mask;
  mask.placed.value = site.build.node("Max", {mask.placed.value, site.build.scalar(lowest_finite(type), type)});
  mask.least = lowest_finite(type);
  return mask;
}

Matched<FloatMask> write_bias(const ScoreTerm& term, Site& site) {
  const DataType type = site.sdpa.type;
  ATTN_OPT_MATCH(const Shape shape, shape_of_term(term, site));
  FloatMask mask{{site.cast(*term.value), shape}, least_in(*term.value, term.coefficient, type, site.facts)};
  if (term.coefficient != 1) mask = scaled(std::move(mask), term, site);
  if (is_lost_in_sum(term, site)) {
    mask.least = kHidesInHalf;
    mask.placed.value = site.build.node("Max", {mask.placed.value, site.build.scalar(mask.least, type)});
  }
  ATTN_OPT_MATCH(mask.placed, to_scores_frame(std::move(mask.placed), term.frame, site));
  return mask;
}

/// FILL as a number that scores are added to: below the lowest of float16, which the scores or the softmax of them may be in,
/// is -inf, and a row of that is NaN. Half of it hides keys as well.
double addable(double fill, const Site& site) {
  constexpr DataType kHalf = onnx::TensorProto::FLOAT16;
  const DataType type = site.sdpa.type;
  const bool is_of_half = type == kHalf || site.sdpa.softmax_precision == kHalf;
  const bool is_exact = !is_of_half || std::isinf(fill) || site.shows_masked_scores();
  if (!is_exact) fill = std::max(fill, lowest_finite(kHalf) / 2);
  return fill == lowest_finite(type) && !site.target.tells_lowest_from_infinity ? next_above_lowest(type) : fill;
}

Shape joint_shape(const Shape& one, const Shape& other, const Facts& facts) {
  Shape shape(std::max(one.size(), other.size()));
  for (size_t axis = 0; axis < shape.size(); ++axis)
    shape[shape.size() - 1 - axis] = joint_size(from_last(one, axis), from_last(other, axis), facts);
  return shape;
}

/// Where(condition, BELOW, fill) or the reverse: a fill lies over what is below it and is never added to it.
Matched<FloatMask> lay_over(const ScoreTerm& term, const std::optional<FloatMask>& below, Site& site) {
  const DataType type = site.sdpa.type;
  ATTN_OPT_MATCH(const Shape shape, shape_of_term(term, site));
  ATTN_OPT_MATCH(Placed condition, to_scores_frame({term.value, shape}, term.frame, site));
  const bool stays = is_multiplied_lowered(term) && std::isfinite(term.fill);
  const double scaled = rounded(term.coefficient * term.fill, type);
  const double fill = addable(stays ? std::max(scaled, lowest_finite(type)) : scaled, site);
  Value* kept = below ? below->placed.value : site.build.scalar(0, type);
  Value* filled = site.build.scalar(fill, type);
  if (term.kind == ScoreTerm::Kind::kDrop) std::swap(kept, filled);
  FloatMask mask{{site.build.node("Where", {condition.value, kept, filled}), condition.shape},
                 std::isfinite(fill) ? std::min(fill, 0.0) : 0.0};
  if (below) {
    mask.placed.shape = joint_shape(condition.shape, below->placed.shape, site.facts);
    mask.least = std::min(mask.least, below->least);
  }
  return mask;
}

/// Scores raised to a floor below all of them are scores plus a mask raised to it.
FloatMask raised(const FloatMask& mask, const ScoreTerm& term, Site& site) {
  const DataType type = site.sdpa.type;
  const double least = rounded(term.coefficient * term.fill, type);
  return {{site.build.node("Max", {mask.placed.value, site.build.scalar(least, type)}), mask.placed.shape},
          std::min(least, 0.0)};
}

/// True if VALUE ends in a sum or product with a number: (1 - m) * -10000.
bool is_linear(Value& value, Facts& facts) {
  const Node* node = canonical(value, facts).producer;
  const bool adds_or_scales = node && (has(*node, Trait::kAdds) || has(*node, Trait::kMultiplies));
  return adds_or_scales && node->inputs.size() == 2 &&
         std::ranges::any_of(node->inputs, [&](Value* operand) { return operand && facts.uniform(*operand); });
}

/// True if VALUE is a sum that the model's constants and sizes alone make. OpenVINO orders three of doubles anew and again.
bool is_sum_of_constants(const Value& value, Facts& facts) {
  return value.producer && has(*value.producer, Trait::kAdds) && facts.constant(value);
}

/// MASK's value as an addend that no constant is added to before the mask is known.
Value* addend(const FloatMask& mask, Site& site) {
  Value* value = mask.placed.value;
  const auto joins_constants = [&] { return is_linear(*value, site.facts) || is_sum_of_constants(*value, site.facts); };
  if (!site.target.folds_linear_masks || !joins_constants()) return value;
  return site.build.node("Max", {value, site.build.scalar(-INFINITY, site.sdpa.type)});
}

FloatMask sum(const FloatMask& one, const FloatMask& other, Site& site) {
  return {{site.build.node("Add", {addend(one, site), addend(other, site)}),
           joint_shape(one.placed.shape, other.placed.shape, site.facts)},
          least_of_sum(one.least, other.least, site.sdpa.type)};
}

/// Some runtimes take the lowest number for -inf and give 0 for a row of it: its neighbour has the same
/// effect on the softmax and keeps the row.
Value* without_lowest(const FloatMask& mask, Site& site) {
  const DataType type = site.sdpa.type;
  Value* value = mask.placed.value;
  if (mask.least > lowest_finite(type) || site.target.tells_lowest_from_infinity) return value;
  Value* is_lowest = site.build.node("Equal", {value, site.build.scalar(lowest_finite(type), type)});
  return site.build.node("Where", {is_lowest, site.build.scalar(next_above_lowest(type), type), value});
}

}  // namespace

std::vector<const ScoreTerm*> terms_that_count(Site& site) {
  std::vector<const ScoreTerm*> terms;
  for (const ScoreTerm& term : site.sdpa.terms) {
    // Without a mask below it a floor has nothing to raise.
    if (term.kind == ScoreTerm::Kind::kFloor && terms.empty()) continue;
    const bool adds_nothing =
        term.kind == ScoreTerm::Kind::kBias && std::isfinite(term.coefficient) && site.facts.uniform(*term.value) == 0.0;
    if (!adds_nothing) terms.push_back(&term);
  }
  return terms;
}

Matched<Placed> write_mask(const std::vector<const ScoreTerm*>& terms, Site& site) {
  if (is_bool_mask(terms, site)) return write_bool_mask(*terms[0], site);
  std::optional<FloatMask> mask;
  for (const ScoreTerm* term : terms) {
    if (term->kind == ScoreTerm::Kind::kFloor) {
      mask = raised(*mask, *term, site);
      continue;
    }
    if (term->kind != ScoreTerm::Kind::kBias) {
      ATTN_OPT_MATCH(mask, lay_over(*term, mask, site));
      continue;
    }
    ATTN_OPT_MATCH(FloatMask bias, write_bias(*term, site));
    mask = mask ? sum(*mask, bias, site) : bias;
  }
  return Placed{without_lowest(*mask, site), mask->placed.shape};
}

}  // namespace attn_opt
