#include "patterns/bias_preconditions.h"

#include <algorithm>
#include <cmath>

#include "attn_opt/internal/mask_contents.h"
#include "src/match/facts/empty_rows.h"

namespace attn_opt {
namespace {

/// True if the operator adds up otherwise than the model: biases to each other before they are to the scores, or one that was
/// multiplied for itself, where the model multiplies the sum, or to other numbers than the scores (Sdpa's sums_otherwise).
bool rounds_sums_otherwise(const Sdpa& sdpa) {
  const auto is_rounded = [](const ScoreTerm& term) {
    int exponent = 0;
    return is_bias(term) && std::isfinite(term.coefficient) && std::abs(std::frexp(term.coefficient, &exponent)) != 0.5;
  };
  return sdpa.sums_otherwise || std::ranges::count_if(sdpa.terms, is_bias) > 1 || std::ranges::any_of(sdpa.terms, is_rounded);
}

/// The sum of two biases of half TYPE up to this rounds by 16 units in the last place of 1 at most: by no more than a
/// probability may be off. In wider types it rounds by 1e-4 at most, as scores of this size do.
double small_bias(DataType type) { return element_size(type) == 2 ? 32 : -kHiding; }

/// True if TERM, where it keeps a key, adds no more than small_bias() to its score.
bool is_small(const ScoreTerm& term, DataType type, Facts& facts) {
  const MaskContents contents = mask_contents(*term.value, facts);
  if (contents.least > contents.greatest) return true;
  const double one = term.coefficient * contents.least, other = term.coefficient * contents.greatest;
  const auto is_small_number = [&](double number) { return std::abs(number) <= small_bias(type); };
  const auto is_harmless = [&](double number) { return number <= kHiding || is_small_number(number); };
  return contents.holds_ends_alone ? is_harmless(one) && is_harmless(other) : is_small_number(one) && is_small_number(other);
}

/// A row of the lowest half alone is what float16 makes of it, which rounds the scores away, or takes them to -inf. ONNX
/// Runtime adds it in float, and the scores of such a row survive.
std::optional<Precondition> lowest_half_not_large(const Sdpa& sdpa, Facts& facts) {
  if (sdpa.type != onnx::TensorProto::FLOAT16) return std::nullopt;
  const auto lowest = std::ranges::find_if(sdpa.terms, [&](const ScoreTerm& term) {
    return is_bias(term) && !keeps_first_key(term) && facts.type(*term.value) == sdpa.type &&
           mask_contents(*term.value, facts).may_hold_lowest;
  });
  if (lowest == sdpa.terms.end()) return std::nullopt;
  return Precondition{
      "biases-small", false,
      "'" + lowest->value->name + "' may be the lowest float16 in a whole row, beside which some runtimes keep scores"};
}

/// A bias that lifts scores takes their digits in float16, which ONNX Runtime adds in float. One that lowers them takes those
/// of keys that weigh nothing, unless it lowers a whole row (is_shallow_bias).
std::optional<Precondition> halves_not_raised(const Sdpa& sdpa, Facts& facts) {
  if (sdpa.type != onnx::TensorProto::FLOAT16) return std::nullopt;
  const auto raises = std::ranges::find_if(sdpa.terms, [&](const ScoreTerm& term) {
    const MaskContents contents = mask_contents(*term.value, facts);
    const double greatest = term.coefficient * (term.coefficient < 0 ? contents.least : contents.greatest);
    return is_bias(term) && contents.least <= contents.greatest && std::isfinite(greatest) && greatest > small_bias(sdpa.type);
  });
  if (raises == sdpa.terms.end()) return std::nullopt;
  return Precondition{"biases-small", false,
                      "'" + raises->value->name + "' is large, and some runtimes add it to scores of float16 in float"};
}

}  // namespace

const ScoreTerm* large_bias(const Sdpa& sdpa, Facts& facts) {
  const auto large = std::ranges::find_if(
      sdpa.terms, [&](const ScoreTerm& term) { return is_bias(term) && !is_small(term, sdpa.type, facts); });
  return large == sdpa.terms.end() ? nullptr : &*large;
}

bool is_shallow_bias(const ScoreTerm& term, const Sdpa& sdpa, Facts& facts) {
  if (!is_bias(term) || keeps_first_key(term)) return false;
  const MaskContents contents = mask_contents(*term.value, facts);
  const double least = term.coefficient * (term.coefficient < 0 ? contents.greatest : contents.least);
  if (sdpa.type == onnx::TensorProto::FLOAT16) return least < -small_bias(sdpa.type);
  return std::isfinite(least) && least <= kHiding && rounds_sums_otherwise(sdpa) && least > absorbing_fill(sdpa.type);
}

/// The model adds one bias after another to the scores, the operator their sum, which rounds it otherwise. Or the model adds
/// one of a half type in float.
std::optional<Precondition> biases_small(const Sdpa& sdpa, Facts& facts) {
  if (auto lowest = lowest_half_not_large(sdpa, facts)) return lowest;
  if (auto raised = halves_not_raised(sdpa, facts)) return raised;
  const bool adds_in_float = std::ranges::any_of(sdpa.terms, &ScoreTerm::adds_in_float);
  if (!rounds_sums_otherwise(sdpa) && !(adds_in_float && element_size(sdpa.type) == 2)) return std::nullopt;
  const ScoreTerm* large = large_bias(sdpa, facts);
  if (!large) return Precondition{"biases-small", true, "no bias is large where it keeps a key"};
  const char* what = adds_in_float                                    ? "is added to scores"
                     : std::ranges::count_if(sdpa.terms, is_bias) > 1 ? "is added to another bias"
                     : sdpa.sums_otherwise                            ? "is added to other numbers than the scores"
                                                                      : "is multiplied before it is added to scores";
  return Precondition{"biases-small", false,
                      "'" + large->value->name + "' may be large, and " + what + " in " + type_name(sdpa.type)};
}

}  // namespace attn_opt
