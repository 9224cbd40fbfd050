#include "patterns/probabilities/summed_values.h"

#include <algorithm>

#include "patterns/products/product_letters.h"
#include "patterns/readers.h"

namespace attn_opt {
namespace {

/// The sum over the keys, which lie KEYS_FROM_LAST in the probabilities, behind READER, a Mul of these and V; null if there is
/// none.
Node* sum_of_values(const Reader& reader, size_t keys_from_last, Facts& facts) {
  Node* sum = reader.node && reader.node->is("Mul") ? only_sum(*reader.node, facts) : nullptr;
  const auto letters = sum ? product_letters(*sum, facts) : std::nullopt;
  if (!letters || letters->operands.size() != 2) return nullptr;
  const auto at = static_cast<size_t>(reader.input);
  const std::string &own = letters->operands[at], &values = letters->operands[1 - at];
  const std::string keys = letters->contracted(at);
  const bool has_features =
      std::ranges::any_of(values, [&](char letter) { return letter != kUnitAxis && !has_letter(own, letter); });
  return has_features && keys.size() == 1 && own.size() == own.find(keys) + keys_from_last + 1 ? sum : nullptr;
}

}  // namespace

Node* only_sum(const Node& factors, Facts& facts) {
  const auto only_reader = [&](const Node& node) {
    const Readers readers = readers_of(*node.outputs[0], facts);
    return readers.only_one() ? readers.all[0].node : nullptr;
  };
  Node* sum = only_reader(factors);
  if (sum && sum->is("Cast")) sum = only_reader(*sum);  // to float, which halves are added up in
  return sum && sum->graph == factors.graph && factors_added_up(*sum, facts) == &factors ? sum : nullptr;
}

void take_sums(Readers& readers, size_t keys_from_last, Facts& facts) {
  for (Reader& reader : readers.all)
    if (Node* sum = sum_of_values(reader, keys_from_last, facts)) reader.node = sum;
}

}  // namespace attn_opt
