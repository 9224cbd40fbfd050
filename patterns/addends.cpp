#include "patterns/addends.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"

namespace attn_opt {
namespace {

constexpr size_t kMaxAddends = 16;
constexpr int kMaxAddendDepth = 16;

using Addends = std::vector<std::pair<Value*, double>>;

void enter(Value& value, double coefficient, Addends& found, int depth, Facts& facts);

/// Enters what NODE adds up, COEFFICIENT times; false if it is no sum.
bool enter_operands(const Node& node, double coefficient, Addends& found, int depth, Facts& facts) {
  const bool is_whole =
      node.domain().empty() && std::ranges::all_of(node.inputs, [](const Value* input) { return input != nullptr; });
  const auto factor = is_whole && node.is("Mul") ? facts.uniform(*node.inputs[1]) : std::nullopt;
  const Node* scaled = factor && std::isfinite(*factor) ? canonical(*node.inputs[0], facts).producer : nullptr;
  if (scaled && scaled->is("Mean")) {
    enter(*node.inputs[0], coefficient * *factor, found, depth, facts);
    return true;
  }
  if (!is_whole || !has(node, Trait::kAdds)) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const double sign = node.is("Neg") || (node.is("Sub") && i == 1) ? -1 : 1;
    enter(*node.inputs[i], sign * coefficient / (node.is("Mean") ? static_cast<double>(node.inputs.size()) : 1), found, depth,
          facts);
  }
  return true;
}

void enter(Value& value, double coefficient, Addends& found, int depth, Facts& facts) {
  Value& seen = canonical(value, facts);
  if (facts.uniform(seen) == 0.0) return;
  const bool is_followed = seen.producer && seen.output == 0 && depth < kMaxAddendDepth && found.size() < kMaxAddends;
  if (!is_followed || !enter_operands(*seen.producer, coefficient, found, depth + 1, facts))
    found.emplace_back(&seen, coefficient);
}

}  // namespace

std::vector<std::pair<Value*, double>> linear_terms(Value& sum, Facts& facts) {
  Addends found;
  enter(sum, 1, found, 0, facts);
  return found;
}

std::vector<Value*> addends_of(Value& sum, Facts& facts) {
  std::vector<Value*> values;
  for (const auto& [value, coefficient] : linear_terms(sum, facts)) {
    if (coefficient != 1) return {&canonical(sum, facts)};
    values.push_back(value);
  }
  return values;
}

}  // namespace attn_opt
