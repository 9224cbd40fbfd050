#include "patterns/binary_masks.h"

#include <algorithm>
#include <utility>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/preconditions.h"

namespace attn_opt {
namespace {

/// Nodes between a mask and the scores, of which an outer product of masks is one.
constexpr int kMostNodes = 8;

/// Adds to MASKS the floats that VALUE is made of by moves and products, and these products; false if it is made of anything
/// but inputs and integers that were cast.
bool add_masks(Value& value, int steps, std::vector<const Value*>& masks, Facts& facts) {
  Value& seen = canonical(value, facts);
  const Node* node = seen.producer;
  if (!is_floating(facts.type(seen)) || facts.constant(seen) || steps == 0) return false;
  const bool is_cast = node && node->is("Cast") && node->input(0) && !is_floating(facts.type(*node->inputs[0]));
  const bool is_product = node && node->is("Mul");
  const bool is_given = is_cast || (seen.is_input && !seen.graph->owner());  // a body is given what may be computed
  if (is_given || is_product) masks.push_back(&seen);
  if (is_given) return true;
  if (!node || !(is_product || has(*node, Trait::kMoves))) return false;
  const size_t operands = is_product ? 2 : 1;
  return std::all_of(node->inputs.begin(), node->inputs.begin() + static_cast<std::ptrdiff_t>(operands),
                     [&](Value* operand) { return operand && add_masks(*operand, steps - 1, masks, facts); });
}

}  // namespace

Matched<Match> match_with_binary_masks(Miss miss, MatchContext& context, const std::function<Matched<Match>()>& match) {
  const bool is_at_factor = miss.id == "scores.scale-per-score" && miss.node && miss.node->is("Mul");
  if (!is_at_factor || !context.binary_masks.empty() || !context.accepted.accepts(kMasksBinary))
    return tl::unexpected<Miss>(std::move(miss));
  for (Value* factor : miss.node->inputs) {
    std::vector<const Value*> masks;
    if (!add_masks(*factor, kMostNodes, masks, context.facts)) continue;
    context.binary_masks = masks;
    auto found = match();
    context.binary_masks.clear();
    if (!found) continue;
    found->sdpa.binary_masks = masks;
    assume(std::string(kMasksBinary), "'" + masks.front()->name + "' is multiplied with scores as ones and zeros", found->sdpa);
    return found;
  }
  return tl::unexpected<Miss>(std::move(miss));
}

}  // namespace attn_opt
