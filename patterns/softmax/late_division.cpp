#include "patterns/softmax/late_division.h"

#include <algorithm>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/layout_checks.h"
#include "patterns/operands/operand_walk.h"
#include "patterns/probabilities/factor_maps.h"
#include "patterns/products/product_letters.h"
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
  return node && makes_product(*node, facts) && operands_of(*node, facts).size() == 2 ? node : nullptr;
}

/// Weights that a product reads, and how their axes lie.
struct ReadWeights {
  FactorSide terms;
  Weights read;
};

/// What nodes that move or cast it make an operand of a product of, of AXES there, if that is weights; nullopt if it is not.
std::optional<ReadWeights> weights_behind(FactorSide operand, Node& reader, MatchContext& context) {
  for (int step = 0; step < kMaxTogether; ++step) {
    operand.value = &before_float_casts(*operand.value, context.facts);
    if (auto read = weights_in(*operand.value, reader, context)) return ReadWeights{std::move(operand), *std::move(read)};
    const auto views = walk_movement({operand.value, operand.axes}, context).views;
    if (views.size() < 2) return std::nullopt;
    operand = {views[1].value, views[1].axes};
  }
  return std::nullopt;
}

/// What NODE divides MOVED by, or multiplies it with, which is made of what a product makes: as it broadcasts to TERMS, the
/// weights that the product of MAPS reads. Null if it does not.
Value* divisor_beside(const FactorSide& terms, const FactorMaps& maps, Value& moved, Value& divisor, Node& node,
                      MatchContext& context) {
  for (const OutputView& view : walk_output(*maps.output.value, maps.output.axes, context)) {
    if (&canonical(*view.value, context.facts) != &moved) continue;
    return placed_beside(broadcast_of(divisor, {view.value, view.axes}, context), Role::kRow, terms, false, node, context);
  }
  return nullptr;
}

}  // namespace

std::optional<SoftmaxSite> divided_moved_product(Node& node, size_t numerator, MatchContext& context) {
  Facts& facts = context.facts;
  Value& moved = canonical(*node.inputs[numerator], facts);
  Node* product = moved_product(moved, facts);
  for (size_t at = 0; product && at < 2; ++at) {
    Value* operand = operands_of(*product, facts)[at];
    const auto whole = operand ? value_product(*product, *operand, context) : tl::unexpected(Miss());
    const auto maps = whole ? factor_maps(*operand, *whole, facts) : std::nullopt;
    const auto weights = maps ? weights_behind(maps->probabilities, node, context) : std::nullopt;
    if (!weights) continue;
    Value& terms = *weights->terms.value;
    Value* divisor = divisor_beside(weights->terms, *maps, moved, *node.inputs[1 - numerator], node, context);
    const auto sum =
        divisor ? row_sum(*divisor, !node.is("Div"), facts.shape(terms).known().size(), node, context) : std::nullopt;
    const auto keys =
        sum && sum->rows.node != product ? summed_axis(*sum, terms, weights->read, false, node, context) : std::nullopt;
    auto site = keys ? softmax_over(*sum, *keys, weights->read, node, context) : std::nullopt;
    if (!site) continue;
    site->output = &terms;
    site->sum = sum->rows.node;
    site->product = product;
    site->divided = node.outputs[0];
    site->moved = &moved;
    return site;
  }
  return std::nullopt;
}

}  // namespace attn_opt
