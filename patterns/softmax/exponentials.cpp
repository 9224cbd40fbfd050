#include "patterns/softmax/exponentials.h"

#include <algorithm>
#include <cmath>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/joined_parts.h"
#include "patterns/layout_checks.h"
#include "patterns/scores/exponential_ratio.h"
#include "patterns/softmax/lowered_scores.h"

namespace attn_opt {
namespace {

/// Factors of a product of exponentials that are looked into.
constexpr int kMaxFactors = 4;

/// The power that NODE takes of its first input; 0 if it takes none, or that is no number.
double power_of_first(const Node& node, Facts& facts) {
  if (node.is("Sqrt") || node.is("Reciprocal")) return node.is("Sqrt") ? 0.5 : -1;
  const auto power = node.is("Pow") && node.input(1) ? facts.uniform(*node.inputs[1]) : std::nullopt;
  return power && std::isfinite(*power) ? *power : 0;
}

/// What NODE, a sum, a quotient or what is multiplied with a number, makes exp() of in other words; nullopt if it makes none.
/// Other products are read by their factors.
std::optional<ExponentialOf> exponential_in_words(const Node& node, Facts& facts) {
  const bool scales = node.is("Mul") && (facts.uniform(*node.inputs[0]) || facts.uniform(*node.inputs[1]));
  const bool is_read = scales || has(node, Trait::kAdds) || node.is("Div");
  return is_read ? exponential_in_ratio(*node.outputs[0], facts) : std::nullopt;
}

/// True if VALUE holds no number below 0, but others than one alone: its logarithms may be added to exponents.
bool is_never_negative(Value& value, MatchContext& context) {
  Facts& facts = context.facts;
  const Value& seen = canonical(value, facts);
  const Node* node = seen.producer;
  if (facts.constant(value)) return !facts.uniform(value) && is_constant_above_0(value, facts);
  if (std::ranges::find(context.given.not_negative, &seen) != context.given.not_negative.end()) return true;
  return node && node->domain().empty() && (node->is("Sigmoid") || node->is("Softplus") || node->is("Relu") || node->is("Abs"));
}

/// The same of what exponentials are divided by, which is not 0.
bool is_divisor(Value& value, MatchContext& context) {
  return context.facts.constant(value) && is_never_negative(value, context);
}

/// True for an Unsqueeze, or a Reshape that is one.
bool adds_unit_axes(const Node& node, Facts& facts) {
  if (!has(node, Trait::kRegroups)) return false;
  const MaybeShape before = facts.shape(*node.inputs[0]), after = facts.shape(*node.outputs[0]);
  return before && after && after->size() > before->size() && unit_moves(*before, *after);
}

bool is_product_of_exponentials(Value& value, MatchContext& context, int depth) {
  Facts& facts = context.facts;
  const Node* node = canonical(value, facts).producer;
  if (!node || !node->domain().empty() || depth == 0) return false;
  if (log_of_base(*node, facts)) return true;
  const auto is_factor = [&](int input) {
    return node->input(input) && is_product_of_exponentials(*node->inputs[static_cast<size_t>(input)], context, depth - 1);
  };
  if (power_of_first(*node, facts) != 0 || has(*node, Trait::kKeepsAll)) return is_factor(0);
  if (node->is("Concat")) return is_factor(0) && are_joined_parts(*node, facts);
  const bool multiplies = node->is("Mul"), is_first = (multiplies || node->is("Div")) && is_factor(0);
  if (is_first && (is_factor(1) || (!multiplies && is_divisor(*node->inputs[1], context)))) return true;
  for (const size_t at : {0, 1})
    if (multiplies && (at == 1 ? is_first : is_factor(1)) && is_never_negative(*node->inputs[at], context)) return true;
  return exponential_in_words(*node, facts).has_value();
}

/// Reads what products of exponentials are exp() of; nullopt where what parts are parts of is no exponential any more, being
/// that of a logarithm.
class ExponentReader {
 public:
  ExponentReader(Node& reader, MatchContext& context) : reader_(reader), context_(context), facts_(context.facts) {}

  std::optional<Exponent> of(Value& value) {
    if (!is_product_of_exponentials(value, context_, kMaxFactors)) return std::nullopt;
    const Node& node = *canonical(value, facts_).producer;
    if (const auto log = log_of_base(node, facts_)) return Exponent{&exponent_input(node), *log};
    if (has(node, Trait::kKeepsAll)) {
      auto before = of(*node.inputs[0]);
      if (before) before->value = InnerValues(reader_, context_).again(node, 0, before->value);
      return before;
    }
    if (node.is("Concat")) {
      Value* whole = joined_parts(node, reader_, context_);
      return whole ? of(*whole) : std::nullopt;
    }
    if (const auto words = exponential_in_words(node, facts_)) return Exponent{words->value, words->factor, true};
    if (const double power = power_of_first(node, facts_); power != 0) {
      const auto first = of(*node.inputs[0]);
      if (!first) return std::nullopt;
      // 1 / exp(-x) leaves the range where exp(x) does, but for what is next to nothing.
      return Exponent{first->value, power * first->factor, first->is_product || power != -1};
    }
    for (const size_t at : {0, 1})
      if (!is_product_of_exponentials(*node.inputs[at], context_, kMaxFactors)) return beside_others(node, at);
    return of_two(node);
  }

 private:
  /// The exponent of NODE, whose input number OTHERS is no exponential.
  std::optional<Exponent> beside_others(const Node& node, size_t others) {
    const auto exponent = of(*node.inputs[1 - others]);
    if (!exponent) return std::nullopt;
    Value* own = value_of(*exponent, reader_, context_);
    Value* log = logarithm_of(*node.inputs[others], reader_, context_);
    InnerValues inner(reader_, context_);
    return Exponent{node.is("Mul") ? inner.sum(own, log) : inner.build().node("Sub", {own, log}), 1, true};
  }

  std::optional<Exponent> of_two(const Node& node) {
    const auto first = of(*node.inputs[0]), second = of(*node.inputs[1]);
    if (!first || !second) return std::nullopt;
    if (&canonical(*first->value, facts_) == &canonical(*second->value, facts_))
      return Exponent{first->value, first->factor + (node.is("Mul") ? second->factor : -second->factor), true};
    Value *one = value_of(*first, reader_, context_), *other = value_of(*second, reader_, context_);
    return Exponent{InnerValues(reader_, context_).build().node(node.is("Mul") ? "Add" : "Sub", {one, other}), 1, true};
  }

  Node& reader_;
  MatchContext& context_;
  Facts& facts_;
};

}  // namespace

std::optional<double> log_of_base(const Node& node, Facts& facts) {
  constexpr double kRounding = 1e-7;
  if (!node.domain().empty() || node.inputs.empty() || !node.inputs[0]) return std::nullopt;
  if (node.is("Exp")) return 1;
  const auto base = node.is("Pow") && node.input(1) ? facts.uniform(*node.inputs[0]) : std::nullopt;
  const MaybeShape before = base ? facts.shape(*node.inputs[1]) : nullptr,
                   after = base ? facts.shape(*node.outputs[0]) : nullptr;
  if (!before || !after || *before != *after || facts.type(*node.inputs[1]) != facts.type(*node.outputs[0]))
    return std::nullopt;
  const double log = std::log(*base);
  if (!(*base > 0) || !std::isfinite(log) || log == 0) return std::nullopt;
  return std::abs(log - 1) <= kRounding ? 1 : log;
}

bool is_constant_above_0(Value& value, Facts& facts) {
  const Tensor* numbers = facts.constant(value);
  if (!numbers || !is_floating(facts.type(value))) return false;
  const Tensor exact = numbers->cast(onnx::TensorProto::DOUBLE).value();
  return std::ranges::all_of(exact.data<double>(), [](double number) { return number > 0 && std::isfinite(number); });
}

bool is_exponential(Value& value, MatchContext& context, UnitAxes axes) {
  const Node* node = canonical(value, context.facts).producer;
  const bool is_whole = node && (axes == UnitAxes::kAdded || !adds_unit_axes(*node, context.facts));
  return is_whole && is_product_of_exponentials(value, context, kMaxFactors);
}

std::optional<Exponent> exponent_in(Value& value, Node& reader, MatchContext& context, UnitAxes axes) {
  if (!is_exponential(value, context, axes)) return std::nullopt;
  return ExponentReader(reader, context).of(value);
}

Value* value_of(const Exponent& exponent, Node& reader, MatchContext& context) {
  if (exponent.factor == 1) return exponent.value;
  InnerValues inner(reader, context);
  return inner.build().node("Mul",
                            {exponent.value, inner.build().scalar(exponent.factor, context.facts.type(*exponent.value))});
}

Value* exponent_of(Value& value, Node& reader, MatchContext& context) {
  const auto exponent = exponent_in(value, reader, context);
  return exponent ? value_of(*exponent, reader, context) : nullptr;
}

Value* logarithm_of(Value& value, Node& reader, MatchContext& context) {
  if (Value* exponent = exponent_of(value, reader, context)) return exponent;
  if (!is_never_negative(value, context)) return nullptr;
  InnerValues inner(reader, context);
  const Node* maker = canonical(value, context.facts).producer;
  // Made once more, it is seen to be no less than 0 where the graph is run with others in its place.
  const bool is_known = context.facts.constant(value) || !maker;
  Value* own = is_known ? &value : inner.again(*maker, {maker->inputs.begin(), maker->inputs.end()});
  return inner.build().node("Log", {own});
}

Matcher plain_difference(const Matcher& minuend, const Matcher& subtrahend) {
  return either({op("Sub", {minuend, subtrahend}), op("Add", {minuend, op("Neg", {subtrahend})})});
}

Matcher difference(const Matcher& minuend, const Matcher& subtrahend) {
  const Matcher turned = [=](Value& value, Facts& facts) {
    return std::ranges::any_of(differences_in(value, 1, facts), [&](const Difference& found) {
      return found.factor == 1 && minuend(*found.minuend, facts) && subtrahend(*found.subtrahend, facts);
    });
  };
  return either({plain_difference(minuend, subtrahend), turned});
}

}  // namespace attn_opt
