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

class Sum {
 public:
  explicit Sum(Facts& facts) : facts_(facts) {}

  void add(Value& value, double coefficient, int depth = 0) {
    Value& seen = canonical(value, facts_);
    if (facts_.uniform(seen) == 0.0) return;
    const Node* node = seen.producer;
    const bool is_followed = node && seen.output == 0 && depth < kMaxAddendDepth && addends_.size() < kMaxAddends && has_all_inputs(*node);
    if (!is_followed || !add_operands(*node, coefficient, depth + 1)) addends_.emplace_back(&seen, coefficient);
  }

  const std::vector<std::pair<Value*, double>>& addends() const { return addends_; }

 private:
  static bool has_all_inputs(const Node& node) {
    return node.domain().empty() && std::ranges::all_of(node.inputs, [](const Value* input) { return input != nullptr; });
  }

  /// False if NODE makes no sum.
  bool add_operands(const Node& node, double coefficient, int depth) {
    const double count = static_cast<double>(node.inputs.size());
    if (node.is("Mul") && node.inputs.size() == 2) {
      const auto factor = facts_.uniform(*node.inputs[1]);
      const Node* scaled = canonical(*node.inputs[0], facts_).producer;
      if (!factor || !std::isfinite(*factor) || !scaled || !scaled->is("Mean")) return false;
      add(*node.inputs[0], coefficient * *factor, depth);
      return true;
    }
    if (!has(node, Trait::kAdds)) return false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const double sign = node.is("Neg") || (node.is("Sub") && i == 1) ? -1 : 1;
      add(*node.inputs[i], sign * coefficient / (node.is("Mean") ? count : 1), depth);
    }
    return true;
  }

  Facts& facts_;
  std::vector<std::pair<Value*, double>> addends_;
};

}  // namespace

std::vector<std::pair<Value*, double>> linear_terms(Value& sum, Facts& facts) {
  Sum found(facts);
  found.add(sum, 1);
  return found.addends();
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
