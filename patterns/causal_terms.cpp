#include "patterns/causal_terms.h"

namespace attn_opt {
namespace {

using Kind = ScoreTerm::Kind;

/// What an element is where the score is left alone.
double neutral(const ScoreTerm& term) { return term.kind == Kind::kKeep ? 1 : 0; }

void read(ScoreTerm& term, Facts& facts) {
  term.not_causal = "is not added or laid over the scores as it is";
  if (term.kind == Kind::kFloor || term.frame.size() < 2 || !(term.coefficient > 0)) return;
  const Dim &queries = term.frame[term.frame.size() - 2], &keys = term.frame.back();
  auto mask = causal_mask(*term.value, neutral(term), queries, keys, facts);
  if (!mask) {
    term.not_causal = std::move(mask.error());
    return;
  }
  term.causal = *std::move(mask);
  term.causal->otherwise = term.coefficient * (term.kind == Kind::kBias ? term.causal->otherwise : term.fill);
}

}  // namespace

void read_causal_terms(Sdpa& sdpa, Facts& facts) {
  for (ScoreTerm& term : sdpa.terms) read(term, facts);
}

}  // namespace attn_opt
