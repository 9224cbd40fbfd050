#include "patterns/scores/causal_terms.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "attn_opt/canonical.h"
#include "patterns/scores/conditions.h"
#include "patterns/scores/form_reader.h"

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
  if (term.kind == Kind::kFloor || term.frame.size() < 2 || !(term.coefficient > 0 || (is_bias && term.coefficient < 0)))
    return;
  const Dim &queries = term.frame[term.frame.size() - 2], &keys = term.frame.back();
  auto mask = causal_mask(*term.value, neutral(term), queries, keys, facts);
  if (!mask) {
    term.not_causal = std::move(mask.error());
    return;
  }
  term.causal = *std::move(mask);
  const auto highest = term.coefficient > 0 ? std::optional(term.causal->otherwise) : least_of_others(*term.value, facts);
  if (is_bias && !highest)
    term.causal.reset();
  else
    term.causal->otherwise = term.coefficient * (is_bias ? *highest : term.fill);
}

/// True unless the node could say parts of TERM alone: it counts from the first key or from lengths, never from both.
bool is_one_rule(const ScoreTerm& term) {
  return term.causal &&
         (!term.causal->lengths || term.causal->counts_from_lengths || !(term.causal->offset || term.causal->least));
}

/// What must hold of a key for TERM to leave its score alone, if it fills or adds -inf elsewhere; nullopt for other terms.
std::optional<Condition> condition_of(const ScoreTerm& term, Facts& facts) {
  if (term.kind == Kind::kKeep || term.kind == Kind::kDrop) return Condition{term.value, term.kind == Kind::kKeep};
  const Node* where = canonical(*term.value, facts).producer;
  if (term.kind != Kind::kBias || term.coefficient <= 0 || !where || !where->is("Where")) return std::nullopt;
  const auto if_true = facts.uniform(*where->inputs[1]), if_false = facts.uniform(*where->inputs[2]);
  if (if_true == 0.0 && if_false == -INFINITY) return Condition{where->inputs[0], true};
  if (if_true == -INFINITY && if_false == 0.0) return Condition{where->inputs[0], false};
  return std::nullopt;
}

bool tells_positions(const std::vector<ScoreTerm>& terms) {
  return std::ranges::any_of(terms, [](const ScoreTerm& term) { return term.causal.has_value(); });
}

/// Conditions within conditions that are looked at.
constexpr int kMaxConditionDepth = 4;

/// TERM, a mask, as masks of which positions tell some; itself if they tell nothing of it, or all.
std::vector<ScoreTerm> masks_in(ScoreTerm term, Facts& facts, int depth = 0) {
  read(term, facts);
  const auto whole = depth < kMaxConditionDepth && !is_one_rule(term) ? condition_of(term, facts) : std::nullopt;
  const auto conditions = whole ? conditions_of(*whole, facts) : std::nullopt;
  if (!conditions) return {std::move(term)};
  std::vector<ScoreTerm> masks;
  for (const Condition& condition : *conditions) {
    ScoreTerm mask = term;
    mask.value = condition.value;
    mask.kind = condition.is_true ? Kind::kKeep : Kind::kDrop;
    if (term.kind == Kind::kBias) {
      mask.fill = -INFINITY;
      mask.is_added = true;
    }
    const auto parts = masks_in(std::move(mask), facts, depth + 1);
    masks.insert(masks.end(), parts.begin(), parts.end());
  }
  return tells_positions(masks) ? masks : std::vector{std::move(term)};
}

/// The terms that TERM, a sum or a mask, is made of, if positions tell some of them; else none.
std::vector<ScoreTerm> parts_of(const ScoreTerm& term, Facts& facts) {
  std::vector<Value*> addends{term.value};
  if (term.kind == Kind::kBias) addends = addends_of(*term.value, facts);
  std::vector<ScoreTerm> parts;
  for (Value* addend : addends) {
    ScoreTerm part = term;
    part.value = addend;
    const auto masks = masks_in(std::move(part), facts);
    parts.insert(parts.end(), masks.begin(), masks.end());
  }
  return parts.size() > 1 && tells_positions(parts) ? parts : std::vector<ScoreTerm>();
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
