#include "tests/mutation/equivalent_sites.h"

#include <algorithm>

namespace attn_opt {
namespace {

constexpr double kHidesByHalf = -4000;

bool changes_depth(const std::string& mutation) {
  const bool is_of_number = mutation.starts_with("number laid over: ") || mutation.starts_with("number kept: ");
  if (is_of_number) return !mutation.ends_with(": negated") && !mutation.ends_with(": 0");
  return mutation == "fill: halved" || mutation == "fill: lowest for a finite one" ||
         mutation == "Attention inputs: mask x 1.01" || mutation == "Attention inputs: mask through float16";
}

}  // namespace

bool leaves_keys_hidden(const std::string& mutation, const Sdpa& sdpa) {
  const auto is_fill = [](const ScoreTerm& term) {
    return term.kind == ScoreTerm::Kind::kKeep || term.kind == ScoreTerm::Kind::kDrop;
  };
  const auto hides = [&](const ScoreTerm& term) { return !is_fill(term) || term.coefficient * term.fill <= kHidesByHalf; };
  return changes_depth(mutation) && std::ranges::any_of(sdpa.terms, is_fill) && std::ranges::all_of(sdpa.terms, hides);
}

bool changes_rows_beyond_exp(const std::string& mutation, const Sdpa& sdpa) {
  const bool is_of_masked_rows = mutation.starts_with("fill: ") || mutation.starts_with("guard: ") ||
                                 mutation.starts_with("preconditions: 'rows-keep-a-key'");
  return is_of_masked_rows && std::ranges::any_of(sdpa.preconditions, [](const Precondition& condition) {
           return condition.id == "exp-in-range" && !condition.proven;
         });
}

bool assumes_scores_in_range(const std::string& mutation, const Sdpa& sdpa) {
  const auto is_known = [](const Precondition& condition) {
    return condition.id != "scores-finite" || condition.proven || condition.is_refinement;
  };
  return mutation == "preconditions: 'scores-finite' left out" && !sdpa.tensor_scales.empty() &&
         std::ranges::all_of(sdpa.preconditions, is_known) && std::ranges::none_of(sdpa.terms, &ScoreTerm::is_added);
}

bool has_one_key(const Sdpa& sdpa) { return sdpa.k.views.front().axes.size(Role::kRow).is(1); }

}  // namespace attn_opt
