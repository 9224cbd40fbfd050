#include "patterns/probabilities/padded_values.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "attn_opt/canonical.h"
#include "patterns/inner_values.h"
#include "patterns/layout_checks.h"

namespace attn_opt {
namespace {

/// Transposes between what is padded and the product.
constexpr int kMostTurns = 4;

/// The values that VALUE, an operand of a product whose keys are the axis ROWS before the last, has beside zeros.
std::optional<Cut> values_beside_zeros(Value& value, size_t rows, InnerValues& inner, Facts& facts) {
  Node* node = canonical(value, facts).producer;
  const MaybeShape shape = facts.shape(value);
  if (!node || !node->input(0) || !shape || shape->size() < 2) return std::nullopt;
  if (Value* turned = node->is("Transpose") ? swapped_from(*node, facts) : nullptr) {
    auto cut = values_beside_zeros(*turned, 1 - rows, inner, facts);
    if (cut) cut->rest = inner.swapped(cut->rest, shape->size());
    return cut;
  }
  const auto added = padded_zeros(*node, rows, facts);
  return added ? std::optional(Cut{node->inputs[0], *added}) : std::nullopt;
}

/// False where nothing is joined to V. Cheap, since it is asked of every product.
bool may_be_padded(Value& values, Facts& facts) {
  const Node* node = canonical(values, facts).producer;
  for (int step = 0; step < kMostTurns && node && node->is("Transpose") && node->input(0); ++step)
    node = canonical(*node->inputs[0], facts).producer;
  return node && node->is("Pad");
}

}  // namespace

std::optional<ProbabilityWalk> without_zero_rows(const ProbabilityWalk& walk, const SoftmaxSite& softmax,
                                                 MatchContext& context) {
  Node& product = *walk.product;
  const bool is_plain = softmax.keys == 0 && !walk.sinks && !walk.guard && walk.steps.empty() && walk.perm.empty() &&
                        !walk.summed && walk.products.size() == 1 && walk.escaping.empty();
  const size_t at = walk.transposed ? 1 : 0;  // keys by queries stand behind V
  if (!is_plain || !product.is("MatMul") || product.inputs[at] != walk.probabilities) return std::nullopt;
  if (!product.input(1 - at) || !may_be_padded(*product.inputs[1 - at], context.facts)) return std::nullopt;
  InnerValues inner(product, context);
  const auto values = values_beside_zeros(*product.inputs[1 - at], 1 - at, inner, context.facts);
  if (!values) return std::nullopt;
  const CutColumns& columns = values->columns;
  Value* end = inner.build().ints({columns.behind == 0 ? std::numeric_limits<int64_t>::max() : -columns.behind});
  Value* rest = inner.slice(walk.probabilities, inner.build().ints({columns.in_front}), end, walk.transposed ? -2 : -1);
  ProbabilityWalk cut = walk;
  cut.sinks = columns;
  cut.product = inner.build()
                    .node("MatMul", walk.transposed ? std::vector{values->rest, rest} : std::vector{rest, values->rest})
                    ->producer;
  cut.products = {cut.product};
  cut.probabilities = rest;
  cut.summed = product.outputs[0];
  cut.way.push_back(rest);
  cut.peeled.emplace_back("Pad(values)");
  return cut;
}

}  // namespace attn_opt
