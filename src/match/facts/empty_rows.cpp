#include "src/match/facts/empty_rows.h"

#include <algorithm>

#include "attn_opt/mask_contents.h"

namespace attn_opt {

bool keeps_first_key(const ScoreTerm& term) {
  if (!term.causal || term.causal->least || term.causal->lengths) return false;
  return !term.causal->offset || term.causal->offset->never_negative();
}

bool has_floor(const Sdpa& sdpa) { return !sdpa.terms.empty() && sdpa.terms.back().kind == ScoreTerm::Kind::kFloor; }

namespace {

/// True if FILL is -inf in TYPE, whatever it is in the model's own.
bool is_infinite_in(DataType type, double fill) { return fill < lowest_finite(type); }

}  // namespace

std::string why_rows_may_be_nan(const Sdpa& sdpa, Facts& facts) {
  if (has_floor(sdpa)) return "";
  int most_lowest = 0;  // that add up in one score
  for (const ScoreTerm& term : sdpa.terms) {
    if (term.kind == ScoreTerm::Kind::kFloor || keeps_first_key(term)) continue;
    if (term.kind != ScoreTerm::Kind::kBias) {
      if (is_infinite_in(sdpa.type, term.coefficient * term.fill)) return "'" + term.value->name + "' may drop every key";
      most_lowest = std::max(most_lowest, 1);  // what a fill is laid over does not show
      continue;
    }
    const MaskContents contents = mask_contents(*term.value, facts);
    const bool is_wider = element_size(facts.type(*term.value)) > element_size(sdpa.type);
    if (contents.may_hold_minus_inf || (is_wider && (contents.may_hold_lowest || is_infinite_in(sdpa.type, contents.least))))
      return "'" + term.value->name + "' may hold -inf";
    most_lowest += contents.may_hold_lowest;
  }
  return most_lowest > 1 ? "masks that add up may reach -inf" : "";
}

}  // namespace attn_opt
