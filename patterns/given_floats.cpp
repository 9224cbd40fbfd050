#include "patterns/given_floats.h"

#include <algorithm>
#include <utility>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/preconditions.h"
#include "patterns/products/products.h"
#include "patterns/softmax/softmax_anchor.h"

namespace attn_opt {
namespace {

/// Nodes between a mask and what is multiplied with it, of which an outer product of masks is one.
constexpr int kMostNodes = 8;
/// Nodes between a product of weights and what divides it, or what it is summed up with.
constexpr size_t kMostAbove = 12;
/// Values that a mask is moved to.
constexpr size_t kMostMoved = 64;

/// Adds to MASKS the floats that VALUE is made of by moves and products, and these products; false if it is made of anything
/// but inputs and integers that were cast.
bool add_masks(Value& value, int steps, std::vector<Value*>& masks, Facts& facts) {
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

/// The masks that FACTOR is made of; none if it is made of anything else.
std::vector<Value*> masks_in(Value& factor, Facts& facts) {
  std::vector<Value*> masks;
  return add_masks(factor, kMostNodes, masks, facts) ? masks : std::vector<Value*>();
}

/// What MASKS are moved to, or handed on as.
std::vector<const Value*> moved_masks(std::vector<Value*> masks, Facts& facts) {
  for (size_t i = 0; i < masks.size(); ++i)
    for (const Use& use : masks[i]->uses) {
      Value* made = use.node && use.input == 0 ? use.node->output(0) : nullptr;
      if (!made || masks.size() == kMostMoved || std::ranges::find(masks, made) != masks.end()) continue;
      if (has(*use.node, Trait::kMoves) || &canonical(*made, facts) == &canonical(*masks[i], facts)) masks.push_back(made);
    }
  return {masks.begin(), masks.end()};
}

/// The factors of scores at which MISS is.
std::vector<Value*> factors_of_scores(const Miss& miss) {
  const bool is_at_factor = miss.id == "scores.scale-per-score" && miss.node && miss.node->is("Mul");
  return is_at_factor ? std::vector<Value*>(miss.node->inputs.begin(), miss.node->inputs.end()) : std::vector<Value*>();
}

/// True for what stands between weights and what divides them or their product with V.
bool may_carry_weights(const Node& node, Facts& facts) {
  return is_product(node) || has(node, Trait::kMoves) || has(node, Trait::kMultiplies) || is_no_op(node, facts);
}

/// The factors of what NODE may divide by its sum, or of what is summed up with V for that.
///
///   (e m) / sum(e m)      ((e m) V) / sum(e m)
std::vector<Value*> factors_of_weights(const Node& node, Facts& facts) {
  if (!may_be_softmax(node) || node.is("Softmax")) return {};
  std::vector<Value*> factors;
  std::vector<const Node*> above{&node};
  for (size_t i = 0; i < above.size(); ++i)
    for (Value* operand : above[i]->inputs) {
      if (operand && above[i] != &node && above[i]->is("Mul")) factors.push_back(operand);
      const Node* maker = operand ? operand->producer : nullptr;
      const bool is_new = maker && std::ranges::find(above, maker) == above.end();
      if (is_new && above.size() < kMostAbove && may_carry_weights(*maker, facts)) above.push_back(maker);
    }
  return factors;
}

/// What MATCH finds where GIVEN is taken for granted: DETAIL of the precondition ID.
Matched<Match> match_with(GivenFloats given, std::string_view id, const std::string& detail, MatchContext& context,
                          const std::function<Matched<Match>()>& match) {
  context.given = std::move(given);
  auto found = match();
  given = std::exchange(context.given, {});
  if (!found) return found;
  found->sdpa.given = std::move(given);
  assume(std::string(id), detail, found->sdpa);
  return found;
}

/// What MATCH finds where factors of scores, at which MISS is, hold ones and zeros.
Matched<Match> match_with_binary_masks(Miss miss, MatchContext& context, const std::function<Matched<Match>()>& match) {
  for (Value* factor : factors_of_scores(miss)) {
    const auto masks = masks_in(*factor, context.facts);
    if (masks.empty() || !context.accepted.accepts(kMasksBinary)) continue;
    const std::string detail = "'" + masks.front()->name + "' is multiplied with scores as ones and zeros";
    GivenFloats given{{masks.begin(), masks.end()}, {}, moved_masks(masks, context.facts)};
    if (auto found = match_with(std::move(given), kMasksBinary, detail, context, match)) return found;
  }
  return tl::unexpected<Miss>(std::move(miss));
}

/// What MATCH finds where factors of weights that ANCHOR divides hold nothing below 0.
Matched<Match> match_with_weighing_masks(Miss miss, const Node& anchor, MatchContext& context,
                                         const std::function<Matched<Match>()>& match) {
  for (Value* factor : factors_of_weights(anchor, context.facts)) {
    auto masks = masks_in(*factor, context.facts);
    if (masks.empty() || !context.accepted.accepts(kMasksNotNegative)) continue;
    const std::string detail = "'" + masks.front()->name + "' is multiplied with weights, which are divided by their sum";
    masks.push_back(&canonical(*factor, context.facts));
    GivenFloats given{{}, {masks.begin(), masks.end()}, moved_masks(masks, context.facts)};
    auto found = match_with(std::move(given), kMasksNotNegative, detail, context, match);
    if (!found) found = match_with_binary_masks(found.error(), context, match);
    if (found) return found;
  }
  return tl::unexpected<Miss>(std::move(miss));
}

}  // namespace

Matched<Match> match_with_given_floats(const Node& anchor, MatchContext& context,
                                       const std::function<Matched<Match>()>& match) {
  auto found = match();
  if (found) return found;
  if (!factors_of_scores(found.error()).empty()) return match_with_binary_masks(found.error(), context, match);
  const bool has_no_softmax = found.error().id == kNotAttention || found.error().id == "softmax.unread";
  return has_no_softmax ? match_with_weighing_masks(found.error(), anchor, context, match) : std::move(found);
}

}  // namespace attn_opt
