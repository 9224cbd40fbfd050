#include "src/match/facts/empty_rows.h"

#include <algorithm>
#include <cmath>

#include "attn_opt/canonical.h"
#include "attn_opt/internal/mask_contents.h"
#include "src/match/permutation.h"

namespace attn_opt {

namespace {

/// The least that COEFFICIENT times CONTENTS is beside extremes; +inf if there is nothing else.
double least_of(const MaskContents& contents, double coefficient) {
  if (contents.least > contents.greatest) return INFINITY;
  return std::min(coefficient * contents.least, coefficient * contents.greatest);
}

/// True if a Pad that a description made, perhaps moved by Transposes, puts zeros in front of what BIAS has along its last
/// axis.
bool is_padded_in_front(Value& bias, Facts& facts) {
  const MaybeShape shape = facts.shape(bias);
  if (!shape || shape->empty()) return false;
  size_t axis = shape->size() - 1;
  const Node* node = canonical(bias, facts).producer;
  constexpr int kMostMoves = 8;
  for (int step = 0; node && node->is("Transpose") && step < kMostMoves; ++step) {
    const std::vector<int64_t> perm = permutation(*node, shape->size());
    if (perm.empty()) return false;
    axis = static_cast<size_t>(perm[axis]);
    node = canonical(*node->inputs[0], facts).producer;
  }
  const bool is_made_here = node && node->output(0) && node->output(0)->is_new;  // what the model makes is drawn as a mask
  if (!is_made_here || !node->is("Pad") || !node->input(1) || node->input(3)) return false;
  const bool adds_zeros =
      node->string_attribute("mode", "constant") == "constant" && (!node->input(2) || facts.uniform(*node->inputs[2]) == 0.0);
  const IntegerData* pads = adds_zeros ? facts.integers(*node->inputs[1]) : nullptr;
  return pads && pads->values.size() == 2 * shape->size() && pads->values[axis].is_constant() && pads->values[axis].value() > 0;
}

}  // namespace

double before_lowering(const ScoreTerm& term) { return term.coefficient / term.after_lowering; }

bool is_multiplied_lowered(const ScoreTerm& term) { return std::abs(term.after_lowering) > 1; }

bool is_held_in_type(const ScoreTerm& term, const MaskContents& contents, DataType type) {
  return term.kind == ScoreTerm::Kind::kBias && is_multiplied_lowered(term) && term.coefficient > 0 &&
         contents.may_hold_lowest && !contents.may_hold_minus_inf &&
         least_of(contents, term.coefficient) >= lowest_finite(type);
}

bool may_leave_type_lowered(const ScoreTerm& term, const MaskContents& contents, DataType type) {
  const bool leaves = contents.may_hold_lowest || least_of(contents, term.coefficient) < lowest_finite(type);
  return term.kind == ScoreTerm::Kind::kBias && is_multiplied_lowered(term) && leaves && !is_held_in_type(term, contents, type);
}

bool keeps_first_key(const ScoreTerm& term) {
  if (!term.causal || term.causal->least || term.causal->lengths) return false;
  return !term.causal->offset || term.causal->offset->never_negative();
}

bool is_zero_at_first_key(const ScoreTerm& term, Facts& facts) {
  return keeps_first_key(term) || (is_bias(term) && is_padded_in_front(*term.value, facts));
}

DataType range_of_scores(const Sdpa& sdpa) {
  return sdpa.narrowest_scores == onnx::TensorProto::UNDEFINED ? sdpa.type : sdpa.narrowest_scores;
}

bool has_floor(const Sdpa& sdpa) { return !sdpa.terms.empty() && sdpa.terms.back().kind == ScoreTerm::Kind::kFloor; }

namespace {

/// True if FILL is -inf in TYPE, whatever it is in the model's own.
bool is_infinite_in(DataType type, double fill) { return fill < lowest_finite(type); }

}  // namespace

std::string why_rows_may_be_nan(const Sdpa& sdpa, Facts& facts) {
  if (has_floor(sdpa)) return "";
  const DataType type = range_of_scores(sdpa);
  const double power = sdpa.exponent_power;
  double deepest = 0, deepest_fill = 0;  // of what adds up in one score: what a fill is laid over does not show
  for (const ScoreTerm& term : sdpa.terms) {
    if (term.kind == ScoreTerm::Kind::kFloor || is_zero_at_first_key(term, facts)) continue;
    if (term.kind != ScoreTerm::Kind::kBias) {
      if (is_infinite_in(type, power * before_lowering(term) * term.fill))
        return "'" + term.value->name + "' may drop every key";
      deepest_fill = std::min(deepest_fill, before_lowering(term) * term.fill);
      continue;
    }
    const MaskContents contents = mask_contents(*term.value, facts);
    const double lowest = before_lowering(term) * lowest_finite(facts.type(*term.value));
    const double least = least_of(contents, before_lowering(term));
    if (contents.may_hold_minus_inf || (contents.may_hold_lowest && is_infinite_in(type, power * lowest)) ||
        is_infinite_in(type, power * least))
      return "'" + term.value->name + "' may hold -inf";
    deepest += std::min({0.0, least, contents.may_hold_lowest ? lowest : 0.0});
  }
  return std::isinf(rounded(power * (deepest + deepest_fill), type)) ? "masks that add up may reach -inf" : "";
}

}  // namespace attn_opt
