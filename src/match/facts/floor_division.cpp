#include "src/match/facts/floor_division.h"

#include <algorithm>

#include "attn_opt/operator_traits.h"
#include "src/match/facts/fact_store.h"

namespace attn_opt {
namespace {

/// Nodes that are looked through for one that makes a truth or a sign.
constexpr int kMaxCopiesOfTruths = 8;

/// True if NODE leaves a number that is not negative as it is, or the truth of it.
bool keeps_truths(const Node& node) {
  if (has(node, Trait::kMoves) || (node.is("Concat") && node.inputs.size() == 1)) return true;
  const int64_t to = node.is("Cast") ? node.int_attribute("to", 0) : 0;
  return to == onnx::TensorProto::BOOL || to == onnx::TensorProto::INT32 || to == onnx::TensorProto::INT64;
}

struct Maker {
  const Node* node = nullptr;
  bool is_negated = false;
};

/// The OP that makes input INPUT of NODE, or of which that is a copy in whatever integer type, or the negation; none if there
/// is no such node.
Maker maker(const Node& node, size_t input, std::string_view op) {
  Maker found;
  const Value* value = node.input(input);
  for (int step = 0; step < kMaxCopiesOfTruths && value && value->producer; ++step) {
    found.node = value->producer;
    if (found.node->is(op)) return found;
    if (found.node->is("Not"))
      found.is_negated = !found.is_negated;
    else if (!keeps_truths(*found.node))
      break;
    value = found.node->input(0);
  }
  return {};
}

/// What the Sign node that makes input INPUT of NODE is of; null if there is none.
const Value* signed_value(const Node& node, size_t input) {
  const Maker sign = maker(node, input, "Sign");
  return sign.node && !sign.is_negated ? sign.node->input(0) : nullptr;
}

/// True if ONE and OTHER are known to be one size.
bool are_one_size(const Value& one, const Value& other, FactStore& store) {
  const IntegerData *of_one = store.elements(one), *of_other = store.elements(other);
  if (!of_one || !of_other || of_one->values.size() != 1) return false;
  return of_one->values[0].never_negative() && of_one->values == of_other->values;
}

bool are_ones(const Value& value, FactStore& store) {
  const IntegerData* data = store.elements(value);
  return data && std::ranges::all_of(data->values, [](const Dim& number) { return number.is(1); });
}

/// True if SIGNS, an Equal, tells that the signs of DIVISION's operands are equal, of which none is negative.
bool compares_signs(const Node& signs, const Node& division, FactStore& store) {
  for (const size_t first : {0, 1}) {
    const Value* dividend = signed_value(signs, first);
    if (!dividend || !are_one_size(*dividend, *division.inputs[0], store)) continue;
    // A divisor is not 0: its sign is 1.
    if (are_ones(*signs.inputs[1 - first], store)) return true;
    const Value* divisor = signed_value(signs, 1 - first);
    if (divisor && are_one_size(*divisor, *division.inputs[1], store)) return true;
  }
  return false;
}

}  // namespace

bool is_never_corrected(const Node& condition, FactStore& store) {
  const bool is_or = condition.is("Or");
  for (const size_t first : {0, 1}) {
    const Maker signs = maker(condition, first, "Equal"), remainder = maker(condition, 1 - first, "Mod");
    if (!signs.node || !remainder.node || signs.is_negated == is_or || remainder.is_negated != is_or) continue;
    if (compares_signs(*signs.node, *remainder.node, store)) return true;
  }
  return false;
}

}  // namespace attn_opt
