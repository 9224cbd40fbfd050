#include "patterns/probabilities/padded_values.h"

#include <cstdint>
#include <limits>

#include "attn_opt/canonical.h"
#include "patterns/inner_values.h"

namespace attn_opt {
namespace {

/// The number of rows of PART, the last axis but one, if all of it is 0; 0 if it is not.
int64_t zero_rows(const Value& part, Facts& facts) {
  const MaybeShape shape = facts.shape(part);
  const bool are_zeros = shape && shape->size() >= 2 && facts.uniform(part) == 0.0;
  const Dim rows = are_zeros ? from_last(*shape, 1) : Dim(0);
  return rows.is_constant() ? rows.value() : 0;
}

/// What NODE, a Concat, joins with zeros at one end of the rows.
std::optional<Cut> beside_zeros(const Node& node, size_t rank, Facts& facts) {
  const int64_t axis = node.int_attribute("axis", 0);
  if (node.inputs.size() != 2 || (axis < 0 ? axis : axis - static_cast<int64_t>(rank)) != -2) return std::nullopt;
  const int64_t in_front = zero_rows(*node.inputs[0], facts), behind = zero_rows(*node.inputs[1], facts);
  if ((in_front == 0) == (behind == 0)) return std::nullopt;
  return Cut{node.inputs[in_front == 0 ? 0 : 1], {in_front, behind}};
}

/// The values that VALUE, an operand of a product, has beside rows of zeros.
std::optional<Cut> values_beside_zeros(Value& value, Facts& facts) {
  const Node* node = canonical(value, facts).producer;
  const MaybeShape shape = facts.shape(value);
  if (!node || !shape || shape->size() < 2) return std::nullopt;
  if (node->is("Concat")) return beside_zeros(*node, shape->size(), facts);
  const bool pads = node->is("Pad") && node->string_attribute("mode", "constant") == "constant" &&
                    (!node->input(2) || facts.uniform(*node->inputs[2]) == 0.0);
  const auto added = pads ? padded_columns(*node, 1, facts) : std::nullopt;
  if (!added || added->is_none() || added->in_front < 0 || added->behind < 0) return std::nullopt;
  return Cut{node->inputs[0], *added};
}

}  // namespace

std::optional<ProbabilityWalk> without_zero_rows(const ProbabilityWalk& walk, const SoftmaxSite& softmax,
                                                 MatchContext& context) {
  Node& product = *walk.product;
  const bool is_plain = softmax.keys == 0 && !walk.sinks && !walk.guard && walk.steps.empty() && walk.perm.empty() &&
                        !walk.transposed && !walk.summed && walk.products.size() == 1 && walk.escaping.empty();
  if (!is_plain || !product.is("MatMul") || product.inputs[0] != walk.probabilities) return std::nullopt;
  const auto values = values_beside_zeros(*product.inputs[1], context.facts);
  if (!values) return std::nullopt;
  const CutColumns& columns = values->columns;
  InnerValues inner(product, context);
  Value* end = inner.build().ints({columns.behind == 0 ? std::numeric_limits<int64_t>::max() : -columns.behind});
  Value* rest = inner.slice(walk.probabilities, inner.build().ints({columns.in_front}), end, -1);
  ProbabilityWalk cut = walk;
  cut.sinks = columns;
  cut.product = inner.build().node("MatMul", {rest, values->rest})->producer;
  cut.products = {cut.product};
  cut.probabilities = rest;
  cut.summed = product.outputs[0];
  cut.way.push_back(rest);
  cut.peeled.emplace_back("Pad(values)");
  return cut;
}

}  // namespace attn_opt
