#include "patterns/probabilities/kept_scores.h"

#include "attn_opt/canonical.h"
#include "patterns/scores/conditions.h"
#include "patterns/scores/selected_scores.h"

namespace attn_opt {
namespace {

/// What SOFTMAX takes but for rows that the guard of WALK makes 0 behind it, which nothing else reads.
///
///   Where(c, softmax(Where(c, x, f)), 0)  =>  Where(c, softmax(x), 0), c being of rows
Value& without_guarded_rows(const SoftmaxSite& softmax, const ProbabilityWalk& walk, Facts& facts) {
  const Node *scores = canonical(*softmax.input, facts).producer, *guard = walk.guard ? walk.guard->node : nullptr;
  if (!softmax.normaliser || !guard || !walk.guard->test || walk.guard_transposed || !walk.escaping.empty())
    return *softmax.input;
  if (!scores || !scores->is("Where") || !guard->is("Where")) return *softmax.input;
  const Condition of_scores = affirmed({scores->inputs[0], true}, facts), of_guard = affirmed({guard->inputs[0], true}, facts);
  const bool keeps = (facts.uniform(*guard->inputs[2]) == 0.0) == of_guard.is_true;
  Value& kept = *scores->inputs[keeps == of_scores.is_true ? 1 : 2];
  const MaybeShape before = facts.shape(kept), after = facts.shape(*softmax.input);
  return of_scores.value == of_guard.value && before && after && *before == *after ? kept : *softmax.input;
}

/// Enters in SOFTMAX that it takes the scores alone of which WALK picks what it makes.
///
///   Gather(softmax(x), rows)  =>  softmax(Gather(x, rows))
Matched<void> take_picked_scores(const ProbabilityWalk& walk, SoftmaxSite& softmax, MatchContext& context) {
  if (walk.picked.empty()) return {};
  if (softmax.weights.size() > 1 || !softmax.sinks.empty() || softmax.cut_off)
    return missed("probabilities.operator", walk.picked[0].part->producer, walk.picked[0].part->producer->op(), walk.peeled);
  for (const PickedRows& rows : walk.picked) softmax.input = picked_as(*rows.part, *softmax.input, rows.axis, context);
  return {};
}

}  // namespace

Matched<void> take_kept_scores(const ProbabilityWalk& walk, SoftmaxSite& softmax, MatchContext& context) {
  softmax.input = &without_guarded_rows(softmax, walk, context.facts);
  return take_picked_scores(walk, softmax, context);
}

}  // namespace attn_opt
