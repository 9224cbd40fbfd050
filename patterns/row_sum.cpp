#include "patterns/row_sum.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "attn_opt/canonical.h"
#include "attn_opt/matcher.h"
#include "attn_opt/operator_traits.h"
#include "patterns/conditions.h"
#include "patterns/exponentials.h"

namespace attn_opt {
namespace {

/// What may be added to sums of exponentials of which one is 1.
constexpr double kMostAdded = 1e-6;
/// So many nodes that compute the same are compared.
constexpr int kMaxAlike = 12;

/// Reads a divisor upward, an operator at a time.
class SumReader {
 public:
  explicit SumReader(Facts& facts) : facts_(facts) {}

  std::optional<RowSum> read(Value& value, bool inverse, size_t rank) {
    const TakenAxis sum = [this](const Node& node, const RowReduction& after) {
      axes_ = after.axes;
      return before_sum(node, after);
    };
    auto rows = reduction_in(value, rank, sum, [this](Value& seen) { return before_step(*seen.producer); }, facts_);
    if (!rows || is_inverse_ != inverse) return std::nullopt;
    read_.rows = *std::move(rows);
    if (inverse) read_.factor = 1 / read_.factor;
    for (AddedToSum& other : read_.others) other.raised -= std::log(read_.factor);
    return read_;
  }

 private:
  /// The value is FACTOR times what is read next, or FACTOR divided by it if IS_INVERSE_: that is NUMBER times, or divided by, another.
  void multiply(double number) { read_.factor *= is_inverse_ ? 1 / number : number; }

  Value* before_step(Node& node) {
    if (read_.is_never_zero) return nullptr;  // of other numbers than the sum a bound means something else
    Value* bounded = node.is("Where") ? before_selection(node) : before_bound(node);
    return bounded ? bounded : before_factor(node);
  }

  /// The sum that CONDITION, of numbers t, asks for: true where t > 0, or where t = 0 if IS_ZERO; null if it asks for anything else.
  Value* asked_for(Value& condition, bool& is_zero) {
    Value* sum = nullptr;
    const Matcher above = either({op("Greater", {any(&sum), number_is(0)}), op("Less", {number_is(0), any(&sum)})});
    const Matcher zero = either({commuted("Equal", any(&sum), number_is(0)), op("LessOrEqual", {any(&sum), number_is(0)})});
    is_zero = zero(condition, facts_);
    return is_zero || above(condition, facts_) ? sum : nullptr;
  }

  /// Where(t > 0, t, 1)  =>  t      Where(t == 0, 1, t)  =>  t
  Value* before_selection(const Node& node) {
    const Condition condition = affirmed({node.inputs[0], true}, facts_);
    bool is_zero = false;
    Value* asked = asked_for(*condition.value, is_zero);
    if (!asked) return nullptr;
    const size_t at = is_zero == condition.is_true ? 2 : 1;
    const auto otherwise = facts_.uniform(*node.inputs[3 - at]);
    if (!otherwise || !std::isfinite(*otherwise) || *otherwise == 0 || !computes_same(*asked, *node.inputs[at], facts_)) return nullptr;
    read_.is_never_zero = true;
    if (!is_zero) read_.is_positive = condition.value;
    return node.inputs[at];
  }

  /// Max(t, x)  =>  t      Clip(t, x)  =>  t      t + x  =>  t, x being positive and as good as nothing      t + Cast(t == 0)  =>  t
  Value* before_bound(const Node& node) {
    const bool is_sum = node.is("Add") || node.is("Sub"), takes_first = node.is("Clip") || node.is("Sub");
    if (!node.is("Max") && !is_sum && !node.is("Clip")) return nullptr;
    if (node.is("Clip") && node.input(2)) return nullptr;
    for (size_t at = 0; node.inputs.size() >= 2 && at < (takes_first ? 1 : 2); ++at) {
      Value *sum = node.inputs[at], *bound = node.inputs[1 - at];
      if (!sum || !bound || (node.is("Max") && node.inputs.size() != 2)) return nullptr;
      auto number = facts_.uniform(*bound);
      if (node.is("Sub") && !number) return nullptr;
      if (node.is("Sub")) number = -*number;
      read_.is_inexact = number && *number > 0 && *number <= kMostAdded;
      read_.is_never_zero = read_.is_inexact || (node.is("Add") && is_one_for_zero(*bound, *sum));
      if (read_.is_never_zero || (is_sum && add(*bound, number, *sum, *node.outputs[0]))) return sum;
    }
    return nullptr;
  }

  /// t + Exp(x)  =>  t      t + 1  =>  t      t - -1  =>  t, where the other, which OTHER is entered for, does not make SUM larger
  bool add(Value& other, std::optional<double> number, Value& sum, Value& whole) {
    const MaybeShape before = facts_.shape(sum), after = facts_.shape(whole);
    if (number ? !(*number > 0) : !is_exponential(unmoved(other, facts_), facts_)) return false;
    if (!before || !after || *before != *after) return false;
    enter(other, number, axes_);
    return true;
  }

  void enter(Value& other, std::optional<double> number, const std::vector<int>& axes) {
    read_.others.push_back({&other, number, axes, std::log(is_inverse_ ? 1 / read_.factor : read_.factor)});
  }

  /// True if NUMBER is 1 where SUM is 0, and 0 elsewhere.
  bool is_one_for_zero(Value& number, Value& sum) {
    const auto condition = condition_of_number(number, facts_);
    bool is_zero = false;
    Value* asked = condition ? asked_for(*condition->value, is_zero) : nullptr;
    return asked && is_zero == condition->is_true && computes_same(*asked, sum, facts_);
  }

  /// 1 / t  =>  t      t * x  =>  t      x / t  =>  t
  Value* before_factor(const Node& node) {
    if (node.is("Reciprocal")) return inverted(node.inputs[0]);
    for (size_t at = 0; node.inputs.size() == 2 && at < 2; ++at) {
      const auto number = node.inputs[1 - at] ? facts_.uniform(*node.inputs[1 - at]) : std::nullopt;
      if (!number || !std::isfinite(*number) || *number == 0 || !node.inputs[at]) continue;
      if (node.is("Pow") && at == 0 && *number == -1) return inverted(node.inputs[0]);
      if (!node.is("Mul") && !node.is("Div")) continue;
      multiply(node.is("Div") && at == 0 ? 1 / *number : *number);
      return node.is("Div") && at == 1 ? inverted(node.inputs[1]) : node.inputs[at];
    }
    return nullptr;
  }

  Value* inverted(Value* value) {
    is_inverse_ = !is_inverse_;
    return value;
  }

  std::optional<RowReduction> before_sum(const Node& node, const RowReduction& after) {
    if (node.is("ReduceSum") || node.is("ReduceL1")) return before_concat(before_reduction(node, after, facts_));
    if (node.is("ReduceMean")) return before_mean(node, after);
    if (node.is("MatMul")) return before_ones(node, after);
    return node.is("Einsum") ? before_einsum(node, after) : std::nullopt;
  }

  /// ROWS, or what they hold beside single columns that are put there, which are entered.
  ///
  ///   sum(Concat(e, Exp(x)))  =>  sum(e) + Exp(x)
  std::optional<RowReduction> before_concat(std::optional<RowReduction> rows) {
    const Node* node = rows ? rows->value->producer : nullptr;
    const MaybeShape whole = node && node->is("Concat") ? facts_.shape(*rows->value) : nullptr;
    const auto axis = rows ? std::ranges::find(rows->axes, RowReduction::kTaken) - rows->axes.begin() : 0;
    if (!whole || whole->size() != rows->axes.size() || (node->int_attribute("axis", 0) + std::ssize(*whole)) % std::ssize(*whole) != axis) return rows;
    const auto is_column = [&](Value* input) {
      const MaybeShape shape = facts_.shape(*input);
      return shape && shape->size() == whole->size() && (*shape)[static_cast<size_t>(axis)].is(1);
    };
    if (std::ranges::count_if(node->inputs, is_column) + 1 != std::ssize(node->inputs)) return rows;
    for (Value* input : node->inputs) {
      if (is_column(input)) enter(*input, facts_.uniform(*input), rows->axes);
      else rows->value = &canonical(*input, facts_);
    }
    return rows;
  }

  /// ReduceMean(e)  =>  1 / S times the sum of S elements
  std::optional<RowReduction> before_mean(const Node& node, const RowReduction& after) {
    auto before = before_reduction(node, after, facts_);
    const MaybeShape shape = facts_.shape(*node.inputs[0]);
    if (!before || !shape || read_.is_inexact) return std::nullopt;
    const auto axis = std::ranges::find(before->axes, RowReduction::kTaken) - before->axes.begin();
    const Dim& size = (*shape)[static_cast<size_t>(axis)];
    if (!size.is_constant() || size.value() <= 0) return std::nullopt;
    multiply(1 / static_cast<double>(size.value()));
    return before;
  }

  /// MatMul(e, 1)  =>  the sums of the last axis, once or several times      MatMul(1, e)  =>  of the one before
  std::optional<RowReduction> before_ones(const Node& node, const RowReduction& after) {
    const MaybeShape made = facts_.shape(*node.outputs[0]);
    for (const size_t at : {0, 1}) {
      const MaybeShape shape = facts_.shape(*node.inputs[at]), ones = facts_.shape(*node.inputs[1 - at]);
      if (!made || !shape || !ones || shape->size() < 2 || facts_.uniform(*node.inputs[1 - at]) != 1.0) continue;
      const size_t taken = shape->size() - 1 - at;
      RowReduction before{&canonical(*node.inputs[at], facts_), after.axes, &node};
      Shape others = *made;
      if (ones->size() == 1) {
        before.axes.insert(before.axes.begin() + static_cast<std::ptrdiff_t>(taken), 0);
        others.insert(others.begin() + static_cast<std::ptrdiff_t>(taken), Dim(1));
      }
      if (others.size() != shape->size() || before.axes.size() != shape->size()) return std::nullopt;
      others[taken] = (*shape)[taken];
      if (others != *shape) return std::nullopt;  // the ones repeat it along leading axes
      before.axes[taken] = RowReduction::kTaken;
      return before;
    }
    return std::nullopt;
  }

  /// Einsum("bhij->bhi", e)  =>  the sums of the axis whose letter is left out
  std::optional<RowReduction> before_einsum(const Node& node, const RowReduction& after) {
    std::string equation = node.string_attribute("equation", "");
    std::erase(equation, ' ');
    const size_t arrow = equation.find("->");
    if (node.inputs.size() != 1 || arrow == std::string::npos || equation.find('.') != std::string::npos) return std::nullopt;
    const std::string read = equation.substr(0, arrow), made = equation.substr(arrow + 2);
    if (made.size() + 1 != read.size() || made.size() != after.axes.size()) return std::nullopt;
    RowReduction before{&canonical(*node.inputs[0], facts_), {}, &node};
    for (const char letter : read) {
      if (std::ranges::count(read, letter) != 1) return std::nullopt;
      const size_t at = made.find(letter);
      before.axes.push_back(at == std::string::npos ? RowReduction::kTaken : after.axes[at]);
    }
    return std::ranges::count(before.axes, RowReduction::kTaken) == 1 ? std::optional(before) : std::nullopt;
  }

  Facts& facts_;
  RowSum read_;
  std::vector<int> axes_;  ///< of the rows, where those of what is looked at lie
  bool is_inverse_ = false;
};

bool have_same_attributes(const Node& one, const Node& other) {
  const auto &of_one = one.proto->attribute(), &of_other = other.proto->attribute();
  return std::ranges::equal(of_one, of_other, [](const auto& a, const auto& b) { return a.SerializeAsString() == b.SerializeAsString(); });
}

/// computes_same(), of at most LEFT nodes.
bool are_alike(Value& one, Value& other, int& left, Facts& facts) {
  const Value &a = canonical(one, facts), &b = canonical(other, facts);
  if (&a == &b) return true;
  const MaybeShape shape = facts.shape(a), other_shape = facts.shape(b);
  if (const auto number = facts.uniform(a)) return number == facts.uniform(b) && shape && other_shape && *shape == *other_shape;
  const Node *node = a.producer, *twin = b.producer;
  if (--left < 0 || !node || !twin || a.output != b.output || node->op() != twin->op() || node->domain() != twin->domain()) return false;
  const bool is_pure = has(*node, Trait::kAdds) || has(*node, Trait::kMultiplies) || has(*node, Trait::kMoves) || node->is("Where") ||
                       node->is("Cast") || node->is("Exp") || node->is("Not") || node->is("ReduceSum");
  if (!is_pure || node->inputs.size() != twin->inputs.size() || !have_same_attributes(*node, *twin)) return false;
  for (size_t i = 0; i < node->inputs.size(); ++i) {
    if (!node->inputs[i] != !twin->inputs[i]) return false;
    if (node->inputs[i] && !are_alike(*node->inputs[i], *twin->inputs[i], left, facts)) return false;
  }
  return true;
}

}  // namespace

std::optional<RowSum> row_sum(Value& value, bool inverse, size_t rank, Facts& facts) { return SumReader(facts).read(value, inverse, rank); }

bool computes_same(Value& one, Value& other, Facts& facts) {
  int left = kMaxAlike;
  return are_alike(one, other, left, facts);
}

}  // namespace attn_opt
