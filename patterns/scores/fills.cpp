#include "patterns/scores/fills.h"

#include <algorithm>
#include <cmath>

#include "attn_opt/mask_contents.h"

namespace attn_opt {
namespace {

using Kind = ScoreTerm::Kind;

/// Scores are seldom as low as this: higher fills are left what they are.
constexpr double kHighest = -2000;

bool is_fill(const ScoreTerm& term) { return term.kind == Kind::kKeep || term.kind == Kind::kDrop; }

/// True if masked scores show elsewhere, or weigh something beside others than scores.
bool needs_its_fill(const Sdpa& sdpa) {
  const bool lowers_scores = !sdpa.exponent_offset;
  return sdpa.scores_output || sdpa.probabilities || sdpa.clamp || (lowers_scores && sdpa.type == onnx::TensorProto::FLOAT16);
}

}  // namespace

std::optional<double> deepen_fills(Sdpa& sdpa) {
  const auto first = std::ranges::find_if(sdpa.terms, is_fill);
  if (first == sdpa.terms.end() || needs_its_fill(sdpa)) return std::nullopt;
  const double fill = first->fill;
  const bool is_alone = std::all_of(first, sdpa.terms.end(), [&](const ScoreTerm& term) {
    return is_fill(term) && term.fill == fill && term.coefficient == 1;
  });
  const bool vanishes = sdpa.exponent_offset && fill + *sdpa.exponent_offset <= kHighest;
  if (!is_alone || fill > kHighest || (sdpa.exponent_offset ? !vanishes : fill <= absorbing_fill(sdpa.type)))
    return std::nullopt;
  for (auto term = first; term != sdpa.terms.end(); ++term) {
    term->fill = vanishes ? -INFINITY : lowest_finite(sdpa.type);
    if (term->causal) term->causal->otherwise = term->fill;
  }
  return vanishes ? std::nullopt : std::optional(fill);
}

}  // namespace attn_opt
