#include "patterns/probabilities/summed_values.h"

#include <algorithm>

#include "patterns/products/product_letters.h"

namespace attn_opt {
namespace {

/// The ReduceSum that alone reads what FACTORS, a Mul, makes; null if there is none.
Node* only_sum(const Node& factors) {
  const Value& made = *factors.outputs[0];
  Node* sum = made.uses.size() == 1 && !made.is_output ? made.uses[0].node : nullptr;
  return sum && factors_added_up(*sum) == &factors ? sum : nullptr;
}

}  // namespace

Node* sum_of_values(const Reader& reader, size_t keys_from_last, Facts& facts) {
  Node* sum = reader.node && reader.node->is("Mul") ? only_sum(*reader.node) : nullptr;
  const auto letters = sum ? product_letters(*sum, facts) : std::nullopt;
  if (!letters) return nullptr;
  const auto at = static_cast<size_t>(reader.input);
  const std::string &own = letters->operands[at], &values = letters->operands[1 - at];
  const std::string keys = letters->contracted(at);
  const bool has_features =
      std::ranges::any_of(values, [&](char letter) { return letter != kUnitAxis && !has_letter(own, letter); });
  return has_features && keys.size() == 1 && own.size() == own.find(keys) + keys_from_last + 1 ? sum : nullptr;
}

}  // namespace attn_opt
