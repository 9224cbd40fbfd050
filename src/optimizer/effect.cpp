#include "src/optimizer/effect.h"

#include <algorithm>

#include "attn_opt/operator_traits.h"

namespace attn_opt {
namespace {

bool is_taken_over(const Value& value, const Edit& edit) {
  const auto& takeovers = edit.takeovers();
  return std::ranges::any_of(takeovers, [&](const Edit::Takeover& takeover) { return takeover.existing == &value; });
}

}  // namespace

Effect effect_of(const Emission& emission, const Sdpa& sdpa, Facts& facts) {
  Effect effect;
  effect.products = sdpa.products;
  effect.batch = emission.scores[0];
  effect.nodes_removed = static_cast<int>(emission.removed.size());
  effect.nodes_added = static_cast<int>(emission.edit.nodes().size());
  const Dim elements = product(emission.scores);
  int64_t bytes_per_score = 0;
  for (const Node* node : emission.removed) {
    if (has(*node, Trait::kRegroups)) continue;
    for (const Value* made : node->outputs) {
      const MaybeShape shape = made ? facts.shape(*made) : nullptr;
      if (!shape || (*shape != emission.scores && product(*shape) != elements)) continue;
      if (is_taken_over(*made, emission.edit)) continue;
      bytes_per_score += static_cast<int64_t>(element_size(facts.type(*made)));
    }
  }
  effect.score_bytes = elements * bytes_per_score;
  return effect;
}

}  // namespace attn_opt
