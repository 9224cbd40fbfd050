#include "src/match/facts/floor_division.h"

#include <algorithm>

#include "attn_opt/operator_traits.h"
#include "src/match/facts/fact_store.h"

namespace attn_opt {
namespace {

/// Nodes that are looked through for one that makes a truth or a sign.
constexpr int kMaxCopiesOfTruths = 8;

/// True if NODE leaves numbers that are not negative as they are, or truths of them.
bool keeps_truths(const Node& node) {
  if (has(node, Trait::kRegroups) || (node.is("Concat") && node.inputs.size() == 1)) return true;
  const int64_t to = node.is("Cast") ? node.int_attribute("to", 0) : 0;
  return to == onnx::TensorProto::BOOL || to == onnx::TensorProto::INT32 || to == onnx::TensorProto::INT64;
}

/// The OP that makes input INPUT of NODE, or of which that is a copy in whatever integer type; null if there is none.
const Node* maker(const Node& node, size_t input, std::string_view op) {
  const Value* value = node.input(input);
  for (int step = 0; step < kMaxCopiesOfTruths && value && value->producer; ++step) {
    if (value->producer->is(op)) return value->producer;
    if (!keeps_truths(*value->producer)) return nullptr;
    value = value->producer->input(0);
  }
  return nullptr;
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
    const Node* of_dividend = maker(signs, first, "Sign");
    if (!of_dividend || !are_one_size(*of_dividend->inputs[0], *division.inputs[0], store)) continue;
    // A divisor is not 0: its sign is 1.
    if (are_ones(*signs.inputs[1 - first], store)) return true;
    const Node* of_divisor = maker(signs, 1 - first, "Sign");
    if (of_divisor && are_one_size(*of_divisor->inputs[0], *division.inputs[1], store)) return true;
  }
  return false;
}

}  // namespace

bool is_never_corrected(const Node& condition, FactStore& store) {
  for (const size_t first : {0, 1}) {
    const Node* differ = maker(condition, first, "Not");
    const Node* signs = differ ? maker(*differ, 0, "Equal") : nullptr;
    const Node* remainder = maker(condition, 1 - first, "Mod");
    if (signs && remainder && compares_signs(*signs, *remainder, store)) return true;
  }
  return false;
}

}  // namespace attn_opt
