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

/// The masks that FACTOR is made of; none if it is made of anything else.
std::vector<const Value*> masks_in(Value& factor, Facts& facts) {
  std::vector<const Value*> masks;
  return add_masks(factor, kMostNodes, masks, facts) ? masks : std::vector<const Value*>();
}

/// The factors of scores at which MISS is.
std::vector<Value*> factors_of_scores(const Miss& miss) {
  const bool is_at_factor = miss.id == "scores.scale-per-score" && miss.node && miss.node->is("Mul");
  return is_at_factor ? std::vector<Value*>(miss.node->inputs.begin(), miss.node->inputs.end()) : std::vector<Value*>();
}

/// The factors of the weights that NODE may divide by their sum, or that its operands may sum up with V.
///
///   (e m) / sum(e m)      ((e m) V) / sum(e m)
std::vector<Value*> factors_of_weights(const Node& node, Facts& facts) {
  if (!may_be_softmax(node) || node.is("Softmax")) return {};
  std::vector<Value*> factors;
  const auto add_factors = [&](Value& weights) {
    const Node* product = canonical(weights, facts).producer;
    if (product && product->is("Mul")) factors.insert(factors.end(), product->inputs.begin(), product->inputs.end());
    return product;
  };
  for (Value* operand : node.inputs) {
    const Node* whole = operand ? add_factors(*operand) : nullptr;
    if (!whole || !is_product(*whole)) continue;
    for (Value* weights : whole->inputs)
      if (weights) add_factors(*weights);
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
    if (auto found = match_with({masks, {}}, kMasksBinary, detail, context, match)) return found;
  }
  return tl::unexpected<Miss>(std::move(miss));
}

/// What MATCH finds where factors of weights that ANCHOR divides hold nothing below 0.
Matched<Match> match_with_weighing_masks(Miss miss, const Node& anchor, MatchContext& context,
                                         const std::function<Matched<Match>()>& match) {
  for (Value* factor : factors_of_weights(anchor, context.facts)) {
    auto masks = factor ? masks_in(*factor, context.facts) : std::vector<const Value*>();
    if (masks.empty() || !context.accepted.accepts(kMasksNotNegative)) continue;
    const std::string detail = "'" + masks.front()->name + "' is multiplied with weights, which are divided by their sum";
    masks.push_back(&canonical(*factor, context.facts));
    auto found = match_with({{}, std::move(masks)}, kMasksNotNegative, detail, context, match);
    if (!found) found = match_with_binary_masks(found.error(), context, match);
    if (found) return found;
  }
  return tl::unexpected<Miss>(std::move(miss));
}

}  // namespace

Matched<Match> match_with_given_floats(const Node& anchor, MatchContext& context,
                                       const std::function<Matched<Match>()>& match) {
  auto found = match();
  const bool is_taken = found || !context.given.binary.empty() || !context.given.not_negative.empty();
  if (is_taken) return found;
  if (!factors_of_scores(found.error()).empty()) return match_with_binary_masks(found.error(), context, match);
  const bool has_no_softmax = found.error().id == kNotAttention || found.error().id == "softmax.unread";
  return has_no_softmax ? match_with_weighing_masks(found.error(), anchor, context, match) : std::move(found);
}

}  // namespace attn_opt
