#include "patterns/softmax/divided_within.h"

#include <utility>
#include <vector>

#include "patterns/inner_values.h"
#include "patterns/products/product_equation.h"

namespace attn_opt {
namespace {

/// EINSUM of LETTERS, whose operand number WEIGHTS that number FACTOR is multiplied with first.
std::optional<KeyBlocks> with_factor(Node& einsum, ProductLetters letters, size_t weights, size_t factor,
                                     MatchContext& context) {
  InnerValues inner(einsum, context);
  std::vector<Value*> operands(einsum.inputs.begin(), einsum.inputs.end());
  Value* row = aligned(operands[factor], letters.operands[factor], letters.operands[weights], inner);
  if (!row) return std::nullopt;
  operands[weights] = inner.build().node("Mul", {operands[weights], row});
  auto softmax = softmax_at(*operands[weights]->producer, context);
  if (!softmax || softmax->divided || softmax->output != operands[weights]) return std::nullopt;
  operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(factor));
  letters.operands.erase(letters.operands.begin() + static_cast<std::ptrdiff_t>(factor));
  Value* product = inner.build().node("Einsum", operands, {GraphBuilder::attribute("equation", text_of(letters))});
  return KeyBlocks{*std::move(softmax), product->producer, einsum.outputs[0], "Einsum(sums)"};
}

}  // namespace

std::optional<KeyBlocks> divided_within(Node& einsum, MatchContext& context) {
  const bool has_factor = einsum.is("Einsum") && einsum.inputs.size() > 2;
  const auto letters = has_factor ? product_letters(einsum, context.facts) : std::nullopt;
  if (!letters) return std::nullopt;
  for (size_t factor = 0; factor < letters->operands.size(); ++factor)
    for (size_t weights = 0; weights < letters->operands.size(); ++weights) {
      const std::string& own = letters->operands[factor];
      const bool is_of_rows = factor != weights && own.size() < letters->operands[weights].size() &&
                              has_all(letters->operands[weights], own) && has_all(letters->result, own);
      auto divided = is_of_rows ? with_factor(einsum, *letters, weights, factor, context) : std::nullopt;
      if (divided) return divided;
    }
  return std::nullopt;
}

}  // namespace attn_opt
