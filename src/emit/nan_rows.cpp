#include "src/emit/nan_rows.h"

#include <algorithm>

namespace attn_opt {
namespace {

constexpr std::string_view kScoresFinite = "scores-finite";

/// Where halves overflow, runtimes that compute with them in float do not. A scale behind the product is one of Q and K in the
/// operator, whose product then overflows elsewhere.
bool overflows_alike(const Sdpa& sdpa) {
  const bool is_wide = sdpa.type == onnx::TensorProto::FLOAT || sdpa.type == onnx::TensorProto::DOUBLE;
  return is_wide && sdpa.scale == 1 && sdpa.tensor_scales.empty() && sdpa.softcap == 0;
}

}  // namespace

bool writes_nan_guard(const Sdpa& sdpa, const AcceptedAssumptions& accepted, const Site& site) {
  const auto is_added = [](const ScoreTerm& term) { return term.kind == ScoreTerm::Kind::kBias || term.is_added; };
  const bool is_of_guard_alone = sdpa.hides_nan && !sdpa.less_largest_of_all && std::ranges::all_of(sdpa.terms, is_added) &&
                                 std::ranges::count(sdpa.preconditions, kScoresFinite, &Precondition::id) == 1;
  // What is NaN in the model's scores alone does not show behind the node.
  return is_of_guard_alone && !sdpa.infinity_makes_nan && !accepted.accepts(kScoresFinite) && accepted.refinements &&
         site.target.family == OperatorFamily::kOnnx && !sdpa.probabilities && overflows_alike(sdpa);
}

Value* with_nan_zero(Value* y, Site& site) {
  return site.build.node("Where", {site.build.node("IsNaN", {y}), site.build.scalar(0, site.sdpa.type), y});
}

void enter_nan_guard(std::vector<Precondition>& conditions) {
  const auto finite = std::ranges::find(conditions, kScoresFinite, &Precondition::id);
  *finite = {std::string(kScoresFinite), true, "NaN is made 0 behind the node"};
  conditions.push_back({"values-finite", false, "what makes NaN 0 behind the node does so for NaN of V", true});
}

void enter_unseen_keys(const Sdpa& sdpa, std::vector<Precondition>& conditions) {
  const auto is_assumed = [](const Precondition& condition) { return condition.id == kScoresFinite && !condition.proven; };
  if (std::ranges::any_of(sdpa.preconditions, is_assumed)) return;
  conditions.push_back({std::string(kScoresFinite), false,
                        "GroupQueryAttention reads no score of a key that a query does not see, be it NaN", true});
}

void enter_row_guard(std::vector<Precondition>& conditions) {
  conditions.push_back({"values-finite", false, "what makes rows without a key 0 behind the node does so for NaN of V", true});
}

}  // namespace attn_opt
