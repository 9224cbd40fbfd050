#include "patterns/causal_terms.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "patterns/addends.h"

namespace attn_opt {
namespace {

using Kind = ScoreTerm::Kind;

/// What an element is where the score is left alone.
double neutral(const ScoreTerm& term) { return term.kind == Kind::kKeep ? 1 : 0; }

/// The least element of MASK, a constant, that is not 0.
std::optional<double> least_of_others(const Value& mask, Facts& facts) {
  const Tensor* constant = facts.constant(mask);
  if (!constant) return std::nullopt;
  const Expected<Tensor> wide = constant->cast(onnx::TensorProto::DOUBLE);
  if (!wide) return std::nullopt;
  double least = INFINITY;
  for (const double element : wide->data<double>())
    if (element != 0) least = std::min(least, element);
  return least;
}

void read(ScoreTerm& term, Facts& facts) {
  term.not_causal = "is not added or laid over the scores as it is";
  const bool is_bias = term.kind == Kind::kBias;
  if (term.kind == Kind::kFloor || term.frame.size() < 2 || !(term.coefficient > 0 || (is_bias && term.coefficient < 0))) return;
  const Dim &queries = term.frame[term.frame.size() - 2], &keys = term.frame.back();
  auto mask = causal_mask(*term.value, neutral(term), queries, keys, facts);
  if (!mask) {
    term.not_causal = std::move(mask.error());
    return;
  }
  term.causal = *std::move(mask);
  const auto highest = term.coefficient > 0 ? std::optional(term.causal->otherwise) : least_of_others(*term.value, facts);
  if (is_bias && !highest) term.causal.reset();
  else term.causal->otherwise = term.coefficient * (is_bias ? *highest : term.fill);
}

/// True unless the node could say parts of TERM alone: it counts from the first key or from lengths, never from both.
bool is_one_rule(const ScoreTerm& term) {
  return term.causal && (!term.causal->lengths || term.causal->counts_from_lengths || !(term.causal->offset || term.causal->least));
}

/// The biases that TERM, a sum, adds up, if positions tell some of them; else none.
std::vector<ScoreTerm> parts_of(const ScoreTerm& term, Facts& facts) {
  if (term.kind != Kind::kBias) return {};
  std::vector<ScoreTerm> parts;
  for (Value* addend : addends_of(*term.value, facts)) {
    ScoreTerm& part = parts.emplace_back(term);
    part.value = addend;
    read(part, facts);
  }
  const bool gains = parts.size() > 1 && std::any_of(parts.begin(), parts.end(), [](const ScoreTerm& part) { return part.causal.has_value(); });
  return gains ? parts : std::vector<ScoreTerm>();
}

}  // namespace

void read_causal_terms(Sdpa& sdpa, Facts& facts) {
  std::vector<ScoreTerm> terms;
  for (ScoreTerm& term : sdpa.terms) {
    read(term, facts);
    const auto parts = is_one_rule(term) ? std::vector<ScoreTerm>() : parts_of(term, facts);
    if (parts.empty())
      terms.push_back(std::move(term));
    else
      terms.insert(terms.end(), parts.begin(), parts.end());
  }
  sdpa.terms = std::move(terms);
}

}  // namespace attn_opt
