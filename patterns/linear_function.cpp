#include "patterns/linear_function.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"

namespace attn_opt {
namespace {

constexpr size_t kMostFunctionNodes = 10;
/// Of what a linear function makes of a number.
constexpr double kLinearRounding = 1e-9;
/// Beyond this a number may be a bound that scores reach by an infinity alone.
constexpr double kLargestNumber = 1e6;

using Numbers = std::map<const Value*, double>;

/// Elementwise operators that are linear in pieces, beside sums and products.
bool bends(const Node& node) {
  return node.is("Relu") || node.is("Abs") || node.is("Sign") || node.is("Max") || node.is("Min") || node.is("Where");
}

bool compares(const Node& node) {
  return node.is("Greater") || node.is("GreaterOrEqual") || node.is("Less") || node.is("LessOrEqual") || node.is("Not");
}

bool is_of_functions(const Node& node) {
  const bool is_known = bends(node) || compares(node) || has(node, Trait::kAdds) || has(node, Trait::kMultiplies);
  return is_known && node.domain().empty() && std::ranges::none_of(node.inputs, [](const Value* input) { return !input; });
}

double chosen(const Node& node, const std::vector<double>& of) {
  if (node.is("Where")) return of[0] != 0 ? of[1] : of[2];
  if (node.is("Max")) return *std::ranges::max_element(of);
  if (node.is("Min")) return *std::ranges::min_element(of);
  if (node.is("Relu")) return std::max(of[0], 0.0);
  if (node.is("Abs")) return std::abs(of[0]);
  return of[0] > 0 ? 1 : of[0] < 0 ? -1 : 0;
}

double compared(const Node& node, const std::vector<double>& of) {
  if (node.is("Not")) return of[0] == 0 ? 1 : 0;
  if (node.is("Greater")) return of[0] > of[1] ? 1 : 0;
  if (node.is("GreaterOrEqual")) return of[0] >= of[1] ? 1 : 0;
  return (node.is("Less") ? of[0] < of[1] : of[0] <= of[1]) ? 1 : 0;
}

/// What NODE, which is_of_functions(), makes of the numbers OF.
double made_of(const Node& node, const std::vector<double>& of) {
  if (bends(node)) return chosen(node, of);
  if (compares(node)) return compared(node, of);
  if (node.is("Neg")) return -of[0];
  if (node.is("Sub")) return of[0] - of[1];
  if (node.is("Mul")) return of[0] * of[1];
  if (node.is("Div")) return of[0] / of[1];
  double sum = 0;
  for (const double one : of) sum += one;
  return node.is("Mean") ? sum / static_cast<double>(of.size()) : sum;
}

/// A function of one value: the nodes that make it, last first, and its numbers.
class FunctionOfOne {
 public:
  FunctionOfOne(Value& result, Facts& facts) : result_(&canonical(result, facts)), facts_(facts) { open_.push_back(result_); }

  /// Goes on above the last node of those that are open; false if it may not be one.
  bool expand() {
    const auto last =
        std::ranges::max_element(open_, {}, [](const Value* value) { return value->producer ? value->producer->id : 0; });
    Node* node = open_.empty() ? nullptr : (*last)->producer;
    if (!node || (*last)->output != 0 || nodes_.size() == kMostFunctionNodes || !is_of_functions(*node)) return false;
    open_.erase(last);
    nodes_.push_back(node);
    bends_ |= bends(*node);
    for (Value* input : node->inputs) {
      Value* seen = &canonical(*input, facts_);
      const auto number = facts_.uniform(*seen);
      if (number && !(std::abs(*number) <= kLargestNumber)) return false;
      if (number)
        numbers_.emplace(seen, *number);
      else if (std::ranges::find(open_, seen) == open_.end())
        open_.push_back(seen);
    }
    return true;
  }

  /// The only value that what was gone through is made of; null if there are several, or if it all is sums and products.
  Value* only_value() const { return bends_ && open_.size() == 1 ? open_.front() : nullptr; }

  /// What the function makes of X in the place of that.
  double at(double x) const {
    Numbers known = numbers_;
    known[open_.front()] = x;
    for (size_t i = nodes_.size(); i-- > 0;) {
      std::vector<double> of;
      for (Value* input : nodes_[i]->inputs) of.push_back(known.at(&canonical(*input, facts_)));
      known[nodes_[i]->outputs[0]] = made_of(*nodes_[i], of);
    }
    return known.at(result_);
  }

  /// Where the function may bend, and beside that.
  std::vector<double> points() const {
    std::vector<double> points{1e-3, 0.37, 1, 2.5, 7, 31, 450, 1e4};
    for (const auto& [value, number] : numbers_)
      for (const double share : {0.5, 1.0, 1.5}) points.push_back(share * number);
    for (size_t i = points.size(); i-- > 0;) points.push_back(-points[i]);
    return points;
  }

 private:
  Value* result_;
  Facts& facts_;
  std::vector<Value*> open_;  ///< not gone above yet
  std::vector<Node*> nodes_;
  Numbers numbers_;
  bool bends_ = false;
};

std::optional<LinearFunction> linear_function(const FunctionOfOne& function, Value& value) {
  const LinearFunction found{&value, (function.at(1) - function.at(-1)) / 2, function.at(0)};
  const bool is_linear = std::ranges::all_of(function.points(), [&](double x) {
    return std::abs(function.at(x) - (found.factor * x + found.number)) <= kLinearRounding * (1 + std::abs(x));
  });
  return is_linear && found.factor != 0 ? std::optional(found) : std::nullopt;
}

}  // namespace

std::optional<LinearFunction> linear_function_in(Value& result, Facts& facts) {
  FunctionOfOne function(result, facts);
  while (function.expand()) {
    Value* value = function.only_value();
    if (!value) continue;
    const MaybeShape before = facts.shape(*value), after = facts.shape(result);
    auto found = before && after && *before == *after ? linear_function(function, *value) : std::nullopt;
    if (found) return found;
  }
  return std::nullopt;
}

}  // namespace attn_opt
