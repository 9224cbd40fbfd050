#include "src/match/facts/floor_division.h"

#include <algorithm>

#include "src/match/facts/fact_store.h"

namespace attn_opt {
namespace {

/// What makes input INPUT of NODE, if it is an OP.
const Node* maker(const Node& node, size_t input, std::string_view op) {
  const Node* made = node.input(input) ? node.inputs[input]->producer : nullptr;
  return made && made->is(op) ? made : nullptr;
}

bool are_sizes(const Value& value, FactStore& store) {
  const IntegerData* data = store.elements(value);
  return data && std::ranges::all_of(data->values, [](const Dim& number) { return number.never_negative(); });
}

bool are_ones(const Value& value, FactStore& store) {
  const IntegerData* data = store.elements(value);
  return data && std::ranges::all_of(data->values, [](const Dim& number) { return number.is(1); });
}

/// True if SIGNS, an Equal, tells that the signs of DIVISION's operands are equal, of which none is negative.
bool compares_signs(const Node& signs, const Node& division, FactStore& store) {
  for (const size_t first : {0, 1}) {
    const Node* of_dividend = maker(signs, first, "Sign");
    const Node* of_divisor = maker(signs, 1 - first, "Sign");
    if (!of_dividend || of_dividend->inputs[0] != division.inputs[0] || !are_sizes(*division.inputs[0], store)) continue;
    // A divisor is not 0: its sign is 1.
    if (are_ones(*signs.inputs[1 - first], store)) return true;
    if (of_divisor && of_divisor->inputs[0] == division.inputs[1] && are_sizes(*division.inputs[1], store)) return true;
  }
  return false;
}

}  // namespace

bool is_never_corrected(const Node& condition, FactStore& store) {
  for (const size_t first : {0, 1}) {
    const Node* differ = maker(condition, first, "Not");
    const Node* signs = differ ? maker(*differ, 0, "Equal") : nullptr;
    const Node* is_inexact = maker(condition, 1 - first, "Cast");
    const Node* remainder = is_inexact ? maker(*is_inexact, 0, "Mod") : nullptr;
    if (signs && remainder && compares_signs(*signs, *remainder, store)) return true;
  }
  return false;
}

}  // namespace attn_opt
