#include "src/match/facts/empty_rows.h"

#include <algorithm>
#include <cmath>

#include "attn_opt/internal/mask_contents.h"

namespace attn_opt {

double before_lowering(const ScoreTerm& term) { return term.coefficient / term.after_lowering; }

bool keeps_first_key(const ScoreTerm& term) {
  if (!term.causal || term.causal->least || term.causal->lengths) return false;
  return !term.causal->offset || term.causal->offset->never_negative();
}

DataType range_of_scores(const Sdpa& sdpa) {
  return sdpa.narrowest_scores == onnx::TensorProto::UNDEFINED ? sdpa.type : sdpa.narrowest_scores;
}

bool has_floor(const Sdpa& sdpa) { return !sdpa.terms.empty() && sdpa.terms.back().kind == ScoreTerm::Kind::kFloor; }

namespace {

/// True if FILL is -inf in TYPE, whatever it is in the model's own.
bool is_infinite_in(DataType type, double fill) { return fill < lowest_finite(type); }

/// The least that TERM, of CONTENTS, adds beside extremes; +inf if it holds nothing else.
double least_added(const ScoreTerm& term, const MaskContents& contents) {
  if (contents.least > contents.greatest) return INFINITY;
  return std::min(before_lowering(term) * contents.least, before_lowering(term) * contents.greatest);
}

}  // namespace

std::string why_rows_may_be_nan(const Sdpa& sdpa, Facts& facts) {
  if (has_floor(sdpa)) return "";
  const DataType type = range_of_scores(sdpa);
  const double power = sdpa.exponent_power;
  int most_lowest = 0;  // that add up in one score
  for (const ScoreTerm& term : sdpa.terms) {
    if (term.kind == ScoreTerm::Kind::kFloor || keeps_first_key(term)) continue;
    if (term.kind != ScoreTerm::Kind::kBias) {
      if (is_infinite_in(type, power * before_lowering(term) * term.fill))
        return "'" + term.value->name + "' may drop every key";
      most_lowest = std::max(most_lowest, 1);  // what a fill is laid over does not show
      continue;
    }
    const MaskContents contents = mask_contents(*term.value, facts);
    const double lowest = before_lowering(term) * lowest_finite(facts.type(*term.value));
    if (contents.may_hold_minus_inf || (contents.may_hold_lowest && is_infinite_in(type, power * lowest)) ||
        is_infinite_in(type, power * least_added(term, contents)))
      return "'" + term.value->name + "' may hold -inf";
    most_lowest += contents.may_hold_lowest;
  }
  return most_lowest > 1 ? "masks that add up may reach -inf" : "";
}

}  // namespace attn_opt
