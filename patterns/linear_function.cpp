#include "patterns/linear_function.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "src/match/facts/fact_store.h"
#include "src/match/facts/integer_range.h"
#include "src/match/operator_map.h"

namespace attn_opt {
namespace {

constexpr size_t kMostFunctionNodes = 10;
/// Of what a linear function makes of a number.
constexpr double kLinearRounding = 1e-9;
constexpr size_t kMostBends = 64;
/// Beyond this a number may be a bound that scores reach by an infinity alone.
constexpr double kLargestNumber = 1e6;

using Numbers = std::map<const Value*, double>;

/// Operators of truths, beside comparisons.
constexpr OperatorSet kLogical = {"And", "Or", "Xor", "Equal"};

/// Elementwise operators that are linear in pieces, beside sums and products.
constexpr OperatorSet kBending = {"Relu", "Abs", "Sign", "Max", "Min", "Where"};
constexpr OperatorSet kComparing = {"Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not"};

bool compares(const Node& node) { return kComparing.has(node); }

bool is_of_functions(const Node& node) {
  const bool is_known = bends(node) || compares(node) || has(node, Trait::kAdds) || has(node, Trait::kMultiplies);
  return is_known && std::ranges::none_of(node.inputs, [](const Value* input) { return !input; });
}

/// True for a Cast to numbers or truths.
bool casts_truths(const Node& node, Facts& facts) {
  if (!node.is("Cast") || !node.input(0)) return false;
  const DataType type = facts.type(*node.outputs[0]);
  return is_floating(type) || is_integer(type);
}

/// NUMBER as TYPE holds it but for its rounding; NaN where integers begin anew.
double held_by(DataType type, double number) {
  if (type == onnx::TensorProto::BOOL) return number != 0 ? 1 : 0;
  if (is_floating(type)) return std::abs(number) > largest_finite(type) ? std::copysign(INFINITY, number) : number;
  const double whole = std::trunc(number);
  const IntegerRange held = range_of_integers(type);
  return held.least <= whole && whole <= held.greatest ? whole : NAN;
}

/// What NODE, which is_of_truths() and is none of functions of numbers, makes of OF.
double logical(const Node& node, const std::vector<double>& of) {
  if (node.is("Cast")) return of[0];
  if (node.is("Equal")) return of[0] == of[1] ? 1 : 0;
  const bool one = of[0] != 0, other = of[1] != 0;
  return (node.is("And") ? one && other : node.is("Or") ? one || other : one != other) ? 1 : 0;
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
  if (node.is("Mul")) return of[0] * of[1];
  if (node.is("Div")) return of[0] / of[1];
  double sum = 0;
  for (size_t i = 0; i < of.size(); ++i) sum += times_added(node, i) * of[i];
  return sum;
}

/// The operands of NODE that it compares, the second with 0 if it is none: it bends or jumps where they are equal.
std::vector<std::pair<size_t, std::optional<size_t>>> compared_operands(const Node& node) {
  if (node.is("Relu") || node.is("Abs") || node.is("Sign")) return {{0, std::nullopt}};
  std::vector<std::pair<size_t, std::optional<size_t>>> pairs;
  if (!node.is("Max") && !node.is("Min") && !(compares(node) && node.inputs.size() == 2)) return pairs;
  for (size_t one = 0; one < node.inputs.size(); ++one)
    for (size_t other = one + 1; other < node.inputs.size(); ++other) pairs.emplace_back(one, other);
  return pairs;
}

/// True if NODE, a Mul or Div, makes a line of OF_ONE and OF_OTHER, its operands in two places.
bool multiplies_with_constant(const Node& node, const std::vector<double>& of_one, const std::vector<double>& of_other) {
  const bool is_last_constant = of_one[1] == of_other[1];
  return node.is("Div") ? is_last_constant && of_one[1] != 0 : is_last_constant || of_one[0] == of_other[0];
}

/// A function of one value: the nodes that make it, last first, and its numbers.
class FunctionOfOne {
 public:
  FunctionOfOne(Value& result, Facts& facts, bool of_truths = false)
      : result_(&canonical(result, facts)), facts_(facts), of_truths_(of_truths) {
    open_.push_back(result_);
  }

  /// Goes on above the last node of those that are open; false if it may not be one.
  bool expand() {
    const auto last =
        std::ranges::max_element(open_, {}, [](const Value* value) { return value->producer ? value->producer->id : 0; });
    Node* node = open_.empty() ? nullptr : (*last)->producer;
    if (!node || (*last)->output != 0 || nodes_.size() == kMostFunctionNodes) return false;
    if (of_truths_ ? !is_of_truths(*node, facts_) : !is_of_functions(*node)) return false;
    open_.erase(last);
    nodes_.push_back(node);
    bends_ |= bends(*node);
    for (Value* input : node->inputs) {
      Value* seen = &canonical(*input, facts_);
      const auto number = facts_.uniform(*seen);
      if (number && !of_truths_ && !(std::abs(*number) <= kLargestNumber)) return false;
      if (number)
        numbers_.emplace(seen, *number);
      else if (std::ranges::find(open_, seen) == open_.end())
        open_.push_back(seen);
    }
    return true;
  }

  /// The only value that what was gone through is made of; null if there are several, or if it all is sums and products, or of
  /// numbers where it is to be of truths.
  Value* only_value() const {
    if (open_.size() != 1) return nullptr;
    const bool is_wanted = of_truths_ ? facts_.type(*open_.front()) == onnx::TensorProto::BOOL : bends_;
    return is_wanted ? open_.front() : nullptr;
  }

  /// What the function makes of X in the place of that.
  double at(double x) const { return made(x, nodes_.size()).at(result_); }

  /// Where the function may bend or jump, in order; nullopt where it is no line between two of these.
  std::optional<std::vector<double>> bends_at() const {
    std::vector<double> bends;
    for (size_t count = 1; count <= nodes_.size(); ++count) {
      const Node& node = *nodes_[nodes_.size() - count];
      std::vector<double> further;
      for (const auto& [one, other] : inside_pieces(bends)) {
        const auto of_one = operands(node, made(one, count)), of_other = operands(node, made(other, count));
        if (has(node, Trait::kMultiplies) && !multiplies_with_constant(node, of_one, of_other)) return std::nullopt;
        for (const auto& [a, b] : compared_operands(node)) {
          const double here = of_one[a] - (b ? of_one[*b] : 0), there = of_other[a] - (b ? of_other[*b] : 0);
          if (here != there) further.push_back(one - here * (other - one) / (there - here));
        }
      }
      bends.insert(bends.end(), further.begin(), further.end());
      std::ranges::sort(bends);
      const auto is_near = [](double one, double other) { return other - one <= kLinearRounding * (1 + std::abs(one)); };
      // Not std::ranges::unique: Clang below 16 does not compile what it returns.
      bends.erase(std::unique(bends.begin(), bends.end(), is_near), bends.end());  // NOLINT(modernize-use-ranges)
      if (bends.size() > kMostBends) return std::nullopt;
    }
    return bends;
  }

  /// Two places in each piece between BENDS, and beside them.
  static std::vector<std::pair<double, double>> inside_pieces(const std::vector<double>& bends) {
    if (bends.empty()) return {{-1, 1}};
    const double first = bends.front(), last = bends.back(), before = 1 + std::abs(first), behind = 1 + std::abs(last);
    std::vector<std::pair<double, double>> places{{first - 2 * before, first - before}, {last + behind, last + 2 * behind}};
    for (size_t i = 1; i < bends.size(); ++i) {
      const double third = (bends[i] - bends[i - 1]) / 3;
      places.emplace_back(bends[i - 1] + third, bends[i] - third);
    }
    return places;
  }

 private:
  /// What the first COUNT nodes make of X.
  Numbers made(double x, size_t count) const {
    Numbers known = numbers_;
    known[open_.front()] = x;
    for (size_t i = nodes_.size(); i-- > nodes_.size() - count;)
      known[nodes_[i]->outputs[0]] = made_by(*nodes_[i], operands(*nodes_[i], known));
    return known;
  }

  double made_by(const Node& node, const std::vector<double>& of) const {
    return of_truths_ ? truths_made_by(node, of, facts_) : made_of(node, of);
  }

  std::vector<double> operands(const Node& node, const Numbers& known) const {
    std::vector<double> of;
    for (Value* input : node.inputs) of.push_back(known.at(&canonical(*input, facts_)));
    return of;
  }

  Value* result_;
  Facts& facts_;
  bool of_truths_;
  std::vector<Value*> open_;  ///< not gone above yet
  std::vector<Node*> nodes_;
  Numbers numbers_;
  bool bends_ = false;
};

std::optional<LinearFunction> linear_function(const FunctionOfOne& function, Value& value) {
  const auto bends = function.bends_at();
  if (!bends) return std::nullopt;
  const auto pieces = FunctionOfOne::inside_pieces(*bends);
  const LinearFunction found{&value, (function.at(1) - function.at(-1)) / 2, function.at(0)};
  const auto is_on_line = [&](double x) {
    return std::abs(function.at(x) - (found.factor * x + found.number)) <= kLinearRounding * (1 + std::abs(x));
  };
  const bool is_linear = std::ranges::all_of(*bends, is_on_line) && std::ranges::all_of(pieces, [&](const auto& piece) {
                           return is_on_line(piece.first) && is_on_line(piece.second);
                         });
  return is_linear && found.factor != 0 ? std::optional(found) : std::nullopt;
}

}  // namespace

bool bends(const Node& node) { return kBending.has(node); }

bool is_of_truths(const Node& node, Facts& facts) {
  if (node.is("Div")) return is_of_functions(node) && is_floating(facts.type(*node.outputs[0]));
  return is_of_functions(node) || casts_truths(node, facts) || (kLogical.has(node) && node.input(0) && node.input(1));
}

double truths_made_by(const Node& node, const std::vector<double>& of, Facts& facts) {
  if (std::ranges::any_of(of, [](double number) { return std::isnan(number); })) return NAN;
  const double made = is_of_functions(node) ? made_of(node, of) : logical(node, of);
  return held_by(facts.type(*node.outputs[0]), made);
}

std::optional<LinearFunction> linear_function_in(Value& result, Facts& facts) {
  FunctionOfOne function(result, facts);
  while (function.expand()) {
    Value* value = function.only_value();
    if (!value) continue;
    const MaybeShape before = facts.shape(*value), after = facts.shape(result);
    const bool is_alike = before && after && *before == *after && facts.type(*value) == facts.type(result);
    auto found = is_alike ? linear_function(function, *value) : std::nullopt;
    if (found) return found;
  }
  return std::nullopt;
}

std::optional<TruthFunction> truth_function_in(Value& result, Facts& facts) {
  FunctionOfOne function(result, facts, true);
  while (function.expand()) {
    Value* value = function.only_value();
    const double of_false = value ? function.at(0) : 0, of_true = value ? function.at(1) : 0;
    if (of_false == of_true || std::isnan(of_false) || std::isnan(of_true)) continue;
    const MaybeShape before = facts.shape(*value), after = facts.shape(result);
    if (before && after && *before == *after) return TruthFunction{value, of_true != 0};
  }
  return std::nullopt;
}

}  // namespace attn_opt
