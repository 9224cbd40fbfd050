#include "patterns/exponentials.h"

#include <cmath>

#include "attn_opt/canonical.h"
#include "patterns/form_reader.h"
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

std::optional<MaskedExponentials> masked_exponentials(Value& value, Node& reader, MatchContext& context) {
  MaskedExponentials read{nearest_source(value, [&](Value& source) { return is_exponential(source, context.facts); }, context.facts)};
  if (!read.exponential) return std::nullopt;
  const auto form = FormReader(reader, context).in_terms_of(*read.exponential, value);
  const MaybeShape before = context.facts.shape(*read.exponential), after = context.facts.shape(value);
  if (!form || !before || !after || *before != *after) return std::nullopt;
  read.factor = 0;
  for (const ScoreCase& one : *form) {
    if (one.number != 0 || !one.addends.empty()) return std::nullopt;
    if (one.scale != 0 && read.factor != 0 && one.scale != read.factor) return std::nullopt;
    read.factor = one.scale != 0 ? one.scale : read.factor;
    read.weights.push_back({one.guard, one.scale != 0 ? 1.0 : 0.0, one.scale != 0 ? 0.0 : -INFINITY});
  }
  if (read.factor <= 0) return std::nullopt;
  read.exponent = exponent_of(*read.exponential, reader, context);
  return read;
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
