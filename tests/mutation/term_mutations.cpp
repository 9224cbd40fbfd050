// The terms of the scores: biases, masks and their fills.
#include <cmath>
#include <limits>

#include "attn_opt/internal/mask_contents.h"
#include "tests/mutation/mutation.h"

namespace attn_opt {
namespace {

using Kind = ScoreTerm::Kind;
using Changes = std::vector<Change<Sdpa>>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kDeep = -1e4;

bool any_term(const ScoreTerm&) { return true; }
bool is_mask(const ScoreTerm& term) { return term.kind == Kind::kKeep || term.kind == Kind::kDrop; }
bool is_floor(const ScoreTerm& term) { return term.kind == Kind::kFloor; }

/// True if the order of A and B does not matter: both are added alike, or lay the same fill over what their masks drop.
bool is_same_step(const ScoreTerm& a, const ScoreTerm& b) {
  return a.kind == b.kind && a.coefficient == b.coefficient && a.fill == b.fill && a.parts.values.empty() &&
         b.parts.values.empty();
}

/// APPLY(terms, i) for each term that FITS.
DescriptionMutation at_terms(std::string step, std::string change, bool (*fits)(const ScoreTerm&),
                             void (*apply)(std::vector<ScoreTerm>&, size_t)) {
  return {std::move(step), std::move(change), [=](const Sdpa& sdpa, Facts&) {
            Changes changes;
            for (size_t i = 0; i < sdpa.terms.size(); ++i)
              if (fits(sdpa.terms[i])) changes.push_back([=](Sdpa& changed) { apply(changed.terms, i); });
            return changes;
          }};
}

DescriptionMutation at_pairs(std::string change, bool (*fits)(const ScoreTerm&, const ScoreTerm&),
                             void (*apply)(ScoreTerm&, ScoreTerm&)) {
  return {"terms", std::move(change), [=](const Sdpa& sdpa, Facts&) {
            Changes changes;
            for (size_t i = 0; i + 1 < sdpa.terms.size(); ++i)
              if (fits(sdpa.terms[i], sdpa.terms[i + 1]))
                changes.push_back([=](Sdpa& changed) { apply(changed.terms[i], changed.terms[i + 1]); });
            return changes;
          }};
}

enum class Depth { kMinusInfinity, kLowest, kFinite };

/// What a fill of TYPE is in kind: at most the type's lowest number counts as that.
Depth depth_of(const ScoreTerm& term, DataType type) {
  const double fill = term.fill * term.coefficient;
  if (fill == -kInfinity) return Depth::kMinusInfinity;
  return fill <= lowest_finite(type) * 0.9 ? Depth::kLowest : Depth::kFinite;
}

DescriptionMutation of_fill(std::string change, Depth from, double to) {
  return {"fill", std::move(change), [=](const Sdpa& sdpa, Facts&) {
            Changes changes;
            for (size_t i = 0; i < sdpa.terms.size(); ++i)
              if (is_mask(sdpa.terms[i]) && depth_of(sdpa.terms[i], sdpa.type) == from)
                changes.push_back([=](Sdpa& changed) {
                  changed.terms[i].coefficient = 1;
                  changed.terms[i].fill = std::isfinite(to) ? std::max(to, lowest_finite(changed.type)) : to;
                });
            return changes;
          }};
}

void drop(std::vector<ScoreTerm>& terms, size_t i) { terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(i)); }
void repeat(std::vector<ScoreTerm>& terms, size_t i) {
  terms.insert(terms.begin() + static_cast<std::ptrdiff_t>(i), ScoreTerm(terms[i]));
}

template <Kind kind>
void take_for(std::vector<ScoreTerm>& terms, size_t i) {
  terms[i].kind = kind;
}

std::vector<DescriptionMutation> fill_mutations() {
  constexpr double kLowest = std::numeric_limits<double>::lowest();
  return {
      of_fill("lowest for -inf", Depth::kMinusInfinity, kLowest),
      of_fill("-1e4 for -inf", Depth::kMinusInfinity, kDeep),
      of_fill("-inf for lowest", Depth::kLowest, -kInfinity),
      of_fill("-1e4 for lowest", Depth::kLowest, kDeep),
      of_fill("-inf for a finite one", Depth::kFinite, -kInfinity),
      of_fill("lowest for a finite one", Depth::kFinite, kLowest),
      at_terms("fill", "0", is_mask, [](auto& terms, size_t i) { terms[i].fill = 0; }),
      at_terms("fill", "-1", is_mask, [](auto& terms, size_t i) { terms[i].fill = -1; }),
      at_terms("fill", "negated", is_mask, [](auto& terms, size_t i) { terms[i].fill = -terms[i].fill; }),
      at_terms("fill", "halved", is_mask, [](auto& terms, size_t i) { terms[i].fill /= 2; }),
  };
}

}  // namespace

std::vector<DescriptionMutation> term_mutations() {
  std::vector<DescriptionMutation> all = fill_mutations();
  const std::vector<DescriptionMutation> more = {
      at_terms("terms", "bias left out", is_bias, drop),
      at_terms("terms", "mask left out", is_mask, drop),
      at_terms("terms", "floor left out", is_floor, drop),
      at_terms("terms", "bias twice", is_bias, repeat),
      at_terms("terms", "bias subtracted", is_bias, [](auto& t, size_t i) { t[i].coefficient = -t[i].coefficient; }),
      at_terms("terms", "bias x 1.01", is_bias, [](auto& t, size_t i) { t[i].coefficient *= 1.01; }),
      at_terms("terms", "bias scaled as the scores are", is_bias, [](auto& t, size_t i) { t[i].coefficient *= 0.5; }),
      at_terms(
          "terms", "keep-mask taken for a drop-mask", [](const ScoreTerm& t) { return t.kind == Kind::kKeep; },
          take_for<Kind::kDrop>),
      at_terms(
          "terms", "drop-mask taken for a keep-mask", [](const ScoreTerm& t) { return t.kind == Kind::kDrop; },
          take_for<Kind::kKeep>),
      at_terms("terms", "bias taken for a keep-mask", is_bias, take_for<Kind::kKeep>),
      at_terms("terms", "bias taken for a drop-mask", is_bias, take_for<Kind::kDrop>),
      at_terms("terms", "mask taken for a bias", is_mask, take_for<Kind::kBias>),
      at_terms("terms", "floor taken for a bias", is_floor, take_for<Kind::kBias>),
      at_terms("terms", "floor at -1", is_floor, [](auto& t, size_t i) { t[i].fill = -1; }),
      at_terms("terms", "batch and heads exchanged", any_term,
               [](auto& t, size_t i) {
                 if (t[i].frame.size() == 4) std::swap(t[i].frame[0], t[i].frame[1]);
               }),
      at_pairs(
          "order exchanged",
          [](const ScoreTerm& a, const ScoreTerm& b) { return !is_same_step(a, b) && (a.kind != b.kind || is_mask(a)); },
          [](ScoreTerm& a, ScoreTerm& b) { std::swap(a, b); }),
      at_pairs(
          "masks exchanged", [](const ScoreTerm& a, const ScoreTerm& b) { return a.value != b.value && !is_same_step(a, b); },
          [](ScoreTerm& a, ScoreTerm& b) { std::swap(a.value, b.value); }),
      at_pairs(
          "one mask for both", [](const ScoreTerm& a, const ScoreTerm& b) { return a.value != b.value; },
          [](ScoreTerm& a, ScoreTerm& b) { b.value = a.value; }),
      at_pairs(
          "fills exchanged",
          [](const ScoreTerm& a, const ScoreTerm& b) { return is_mask(a) && is_mask(b) && a.fill != b.fill; },
          [](ScoreTerm& a, ScoreTerm& b) { std::swap(a.fill, b.fill); }),
  };
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace attn_opt
