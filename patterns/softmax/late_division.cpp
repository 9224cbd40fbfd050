#include "patterns/softmax/late_division.h"

#include <algorithm>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/layout_checks.h"
#include "patterns/operands/operand_walk.h"
#include "patterns/probabilities/factor_maps.h"
#include "patterns/products/products.h"
#include "patterns/softmax/row_sum.h"
#include "patterns/softmax/shares.h"
#include "patterns/softmax/weights.h"

namespace attn_opt {
namespace {

/// The product that moves make VALUE of; null if it is made otherwise.
Node* moved_product(Value& value, Facts& facts) {
  Node* node = canonical(value, facts).producer;
  for (int step = 0; step < kMaxTogether && node && has(*node, Trait::kKeepsAll); ++step)
    node = canonical(*node->inputs[0], facts).producer;
  return node && is_product(*node) && node->inputs.size() == 2 ? node : nullptr;
}

/// What NODE divides MOVED by, or multiplies it with, which is made of what PRODUCT makes of OPERAND: as it broadcasts to
/// OPERAND. Null if it does not.
Value* divisor_beside(Value& operand, Node& product, Value& moved, Value& divisor, Node& node, MatchContext& context) {
  const auto read = value_product(product, operand, context);
  const auto maps = read ? factor_maps(operand, *read, context.facts) : std::nullopt;
  if (!maps) return nullptr;
  for (const OutputView& view : walk_output(*maps->output.value, maps->output.axes, context)) {
    if (&canonical(*view.value, context.facts) != &moved) continue;
    return placed_beside(broadcast_of(divisor, {view.value, view.axes}, context), Role::kRow, maps->probabilities, false, node,
                         context);
  }
  return nullptr;
}

}  // namespace

std::optional<SoftmaxSite> divided_moved_product(Node& node, size_t numerator, MatchContext& context) {
  Facts& facts = context.facts;
  Value& moved = canonical(*node.inputs[numerator], facts);
  Node* product = moved_product(moved, facts);
  for (size_t at = 0; product && at < 2; ++at) {
    Value* operand = product->inputs[at];
    Value* terms = operand ? &before_float_casts(*operand, facts) : nullptr;
    const auto read = terms ? weights_in(*terms, node, context) : std::nullopt;
    Value* divisor = read ? divisor_beside(*operand, *product, moved, *node.inputs[1 - numerator], node, context) : nullptr;
    const auto sum =
        divisor ? row_sum(*divisor, !node.is("Div"), facts.shape(*terms).known().size(), node, context) : std::nullopt;
    const auto keys = sum && sum->rows.node != product ? summed_axis(*sum, *terms, *read, false, node, context) : std::nullopt;
    auto site = keys ? softmax_over(*sum, *keys, *read, node, context) : std::nullopt;
    if (!site) continue;
    site->output = terms;
    site->sum = sum->rows.node;
    site->product = product;
    site->divided = node.outputs[0];
    site->moved = &moved;
    return site;
  }
  return std::nullopt;
}

}  // namespace attn_opt
