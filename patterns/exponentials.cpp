#include "patterns/exponentials.h"

#include "attn_opt/canonical.h"
#include "patterns/inner_values.h"

namespace attn_opt {
namespace {

/// Factors of a product of exponentials that are looked into.
constexpr int kMaxFactors = 4;

bool is_product_of_exponentials(Value& value, Facts& facts, int depth) {
  const Node* node = canonical(value, facts).producer;
  if (!node || !node->domain().empty() || depth == 0) return false;
  if (node->is("Exp")) return true;
  const auto is_factor = [&](int input) { return node->input(input) && is_product_of_exponentials(*node->inputs[static_cast<size_t>(input)], facts, depth - 1); };
  if (node->is("Reciprocal")) return is_factor(0);
  return (node->is("Mul") || node->is("Div")) && is_factor(0) && is_factor(1);
}

}  // namespace

bool is_exponential(Value& value, Facts& facts) { return is_product_of_exponentials(value, facts, kMaxFactors); }

Value* exponent_of(Value& value, Node& reader, MatchContext& context) {
  if (!is_exponential(value, context.facts)) return nullptr;
  const Node& node = *canonical(value, context.facts).producer;
  if (node.is("Exp")) return node.inputs[0];
  Value* first = exponent_of(*node.inputs[0], reader, context);
  Value* second = node.is("Reciprocal") ? nullptr : exponent_of(*node.inputs[1], reader, context);
  InnerValues inner(reader, context);
  if (!second) return inner.build().node("Neg", {first});
  return inner.build().node(node.is("Mul") ? "Add" : "Sub", {first, second});
}

Matcher difference(const Matcher& minuend, const Matcher& subtrahend) {
  const Matcher negative_first = [=](Value& value, Facts& facts) {
    Value *negative = nullptr, *other = nullptr;
    return op("Add", {any(&negative), any(&other)})(value, facts) && minuend(*other, facts) &&
           op("Neg", {subtrahend})(*negative, facts);
  };
  return either({op("Sub", {minuend, subtrahend}), op("Add", {minuend, op("Neg", {subtrahend})}), negative_first});
}

}  // namespace attn_opt
