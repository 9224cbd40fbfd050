#include "attn_opt/internal/mask_contents.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "src/match/facts/fact_store.h"
#include "src/match/facts/integer_range.h"

namespace attn_opt {
namespace {

constexpr int kMaxNodes = 64;

/// Extremes, and the range of all else: what is no extreme may become one in a sum or a product.
struct Contents {
  MaskContents extremes;
  double least = -INFINITY, greatest = INFINITY;
  bool ends_alone = false;  ///< nothing lies between LEAST and GREATEST

  bool is_number() const { return least == greatest; }
  bool ordinary() const { return !extremes.may_hold_lowest && !extremes.may_hold_minus_inf; }
};

constexpr MaskContents kNoExtremes{false, false};
constexpr Contents kNothing{kNoExtremes, INFINITY, -INFINITY, true};

Contents of_number(double value, DataType type) {
  if (std::isnan(value)) return {};
  const bool lowest = value == lowest_finite(type), minus_inf = value == -INFINITY;
  if (lowest || minus_inf) return {{lowest, minus_inf}, INFINITY, -INFINITY, true};
  return {kNoExtremes, value, value, true};
}

/// Is each end of ONE an end of both, so that together they hold no third number?
bool adds_no_number(const Contents& one, double least, double greatest) {
  return one.ends_alone && (one.least > one.greatest || ((one.least == least || one.least == greatest) &&
                                                         (one.greatest == least || one.greatest == greatest)));
}

Contents either_of(const Contents& one, const Contents& other) {
  const double least = std::min(one.least, other.least), greatest = std::max(one.greatest, other.greatest);
  return {{one.extremes.may_hold_lowest || other.extremes.may_hold_lowest,
           one.extremes.may_hold_minus_inf || other.extremes.may_hold_minus_inf},
          least,
          greatest,
          adds_no_number(one, least, greatest) && adds_no_number(other, least, greatest)};
}

Contents of_tensor(const Tensor& tensor, DataType type) {
  Contents contents = kNothing;
  const auto doubles = tensor.cast(onnx::TensorProto::DOUBLE);
  if (!doubles) return {};
  for (double value : doubles->data<double>()) contents = either_of(contents, of_number(value, type));
  return contents;
}

/// Results of arithmetic, rounded to TYPE; of no more than two operands' ends where ENDS_ALONE.
Contents of_range(double least, double greatest, DataType type, bool ends_alone = false) {
  // A result near the lowest number may round to it, or beyond.
  const double bound = lowest_finite(type) * (1 - 1.0 / 128);
  return least > bound ? Contents{kNoExtremes, rounded(least, type), rounded(greatest, type), ends_alone} : Contents{};
}

/// Results of arithmetic, rounded to TYPE, that are one of two numbers.
Contents of_two(double one, double other, DataType type) {
  Contents contents = kNothing;
  for (const double number : {one, other}) {
    const bool is_exact = std::isinf(number) || number == lowest_finite(type);
    contents = either_of(contents, is_exact ? of_number(number, type) : of_range(number, number, type, true));
  }
  return contents;
}

/// What a Cast to TO makes of any number of FROM, which is not floating.
Contents of_integers(DataType from, DataType to) {
  if (from == onnx::TensorProto::BOOL) return {kNoExtremes, 0, 1, true};
  if (!is_integer(from)) return {};
  return of_range(-std::ldexp(1.0, 8 * static_cast<int>(element_size(from)) - 1),
                  std::ldexp(1.0, 8 * static_cast<int>(element_size(from))), to);
}

class Follower {
 public:
  explicit Follower(Facts& facts) : facts_(facts) {}

  Contents follow(Value* value) {
    if (!value) return {};
    Value& seen = canonical(*value, facts_);
    const DataType type = facts_.type(seen);
    if (!is_floating(type)) return {};
    if (auto number = facts_.uniform(seen)) return of_number(*number, type);
    if (const Tensor* constant = facts_.constant(seen)) return of_tensor(*constant, type);
    Node* node = seen.producer;
    if (!node || !node->domain().empty() || ++nodes_ > kMaxNodes) return {};
    if (has(*node, Trait::kMoves)) return follow(node->input(0));
    if (node->is("Concat")) return of_all(*node, 0);
    if (node->is("Where")) return of_choice(*node, type);
    if (node->is("ScatterND")) return of_scatter(*node);
    if (node->is("Trilu")) return either_of(follow(node->input(0)), of_number(0, type));
    if (node->is("Cast")) return of_cast(*node, type);
    if (node->is("Mul")) return of_product(*node, type);
    if (node->is("Add") || node->is("Sub")) return of_sum(*node, type);
    if (node->is("Neg")) return of_negative(follow(node->input(0)), type);
    if (node->is("Log")) return of_logarithm(follow(node->input(0)), type);
    if (node->is("Reciprocal")) return of_quotient(1, follow(node->input(0)), type);
    if (node->is("Div") && node->input(0)) return of_quotient(facts_.uniform(*node->inputs[0]), follow(node->input(1)), type);
    if (node->is("Clip"))
      return held_within(follow(node->input(0)), clip_bound(*node, 1, facts_), clip_bound(*node, 2, facts_), type);
    if (node->is("Max") || node->is("Min")) return of_extreme(*node, type);
    return {};
  }

  /// True if what was followed to CONTENTS may be NaN: arithmetic that may make it has no greatest number here.
  bool may_be_nan(const Contents& contents) const { return hands_nan_on_ || contents.greatest == INFINITY; }

 private:
  Contents of_all(const Node& node, size_t first) {
    Contents contents = kNothing;
    for (size_t i = first; i < node.inputs.size(); ++i) contents = either_of(contents, follow(node.inputs[i]));
    return contents;
  }

  /// Where(bool(x), a, x) holds a and 0.
  Contents of_choice(const Node& where, DataType type) {
    const Value* tested = tested_for_zero(where.input(0));
    if (tested && where.input(2) && tested == &canonical(*where.inputs[2], facts_))
      return either_of(follow(where.input(1)), of_number(0, type));
    return of_all(where, 1);
  }

  /// The number that CONDITION is the Cast to bool of; null if it is none.
  const Value* tested_for_zero(Value* condition) {
    for (int casts = 0; condition && casts < kMaxNodes; ++casts) {
      Value& seen = canonical(*condition, facts_);
      if (facts_.type(seen) != onnx::TensorProto::BOOL) return &seen;
      if (!seen.producer || !seen.producer->is("Cast")) return nullptr;
      condition = seen.producer->inputs[0];
    }
    return nullptr;
  }

  Contents of_scatter(const Node& node) {
    if (node.string_attribute("reduction", "none") != "none") return {};
    return either_of(follow(node.input(0)), follow(node.input(2)));
  }

  Contents of_cast(const Node& node, DataType to) {
    Value* source = node.input(0);
    if (!source) return {};
    const DataType from = facts_.type(*source);
    if (!is_floating(from)) {
      const auto range = from == onnx::TensorProto::BOOL ? std::nullopt : integer_range(*source, facts_);
      return range ? of_range(range->least, range->greatest, to) : of_integers(from, to);
    }
    Contents contents = follow(source);
    if (largest_finite(to) < largest_finite(from)) return narrowed(contents, to);
    if (lowest_finite(to) == lowest_finite(from)) return contents;
    const bool may_hold_lowest = std::exchange(contents.extremes.may_hold_lowest, false);
    return may_hold_lowest ? either_of(contents, of_number(lowest_finite(from), to)) : contents;
  }

  /// CONTENTS rounded to TYPE, whose range is smaller: the lowest number, and what lies beyond TYPE's own, becomes -inf.
  static Contents narrowed(const Contents& contents, DataType type) {
    Contents result = kNothing;
    if (!contents.ordinary()) result.extremes.may_hold_minus_inf = true;
    if (contents.least > contents.greatest) return result;
    if (!contents.ends_alone) return either_of(result, of_range(contents.least, contents.greatest, type));
    for (const double end : {contents.least, contents.greatest}) {
      const bool is_beyond = end < lowest_finite(type) * (1 + 1.0 / 128);
      result = either_of(result, is_beyond ? of_number(-INFINITY, type) : of_range(end, end, type, true));
    }
    return result;
  }

  static Contents of_negative(Contents contents, DataType type) {
    if (contents.extremes.may_hold_minus_inf) return {};
    if (std::exchange(contents.extremes.may_hold_lowest, false)) {
      const double lowest = lowest_finite(type);
      const Contents finite{kNoExtremes, lowest, lowest, true};
      contents = either_of(contents, finite);
    }
    if (contents.ends_alone) return of_two(-contents.greatest, -contents.least, type);
    return of_range(-contents.greatest, -contents.least, type);
  }

  /// What numbers from 0 on are exp() of.
  static Contents of_logarithm(const Contents& contents, DataType type) {
    // Of the least number above 0 that a type has: a float's is 2^-149, and those of half types are no less.
    const double deepest = std::log(2.0) * (type == onnx::TensorProto::DOUBLE ? -1074 : -149);
    if (!contents.ordinary() || !(contents.least >= 0)) return {{false, true}, deepest - 1, INFINITY};
    const double least = std::log(contents.least), greatest = std::log(contents.greatest);
    if (contents.ends_alone) return of_two(least, greatest, type);
    return {{false, contents.least == 0}, least, greatest};
  }

  /// NUMBER divided by one of two numbers from 0 on.
  static Contents of_quotient(std::optional<double> number, const Contents& contents, DataType type) {
    if (!number || !contents.ordinary() || !contents.ends_alone || !(contents.least >= 0)) return {};
    return of_two(*number / contents.least, *number / contents.greatest, type);
  }

  /// What Max or Min makes of two operands, the one of which is a number.
  Contents of_extreme(const Node& node, DataType type) {
    if (node.inputs.size() != 2 || !node.inputs[0] || !node.inputs[1]) return {};
    for (const size_t bounded : {0, 1})
      if (const auto bound = facts_.uniform(*node.inputs[1 - bounded])) {
        const bool is_least = node.is("Max");
        return held_within(follow(node.inputs[bounded]), is_least ? *bound : -INFINITY, is_least ? INFINITY : *bound, type);
      }
    return {};
  }

  /// CONTENTS of a Clip, Max or Min, which hand NaN on: numbers of which nothing is known are bounded then, and may be NaN.
  Contents held_within(const Contents& contents, std::optional<double> least, std::optional<double> greatest, DataType type) {
    hands_nan_on_ = hands_nan_on_ || contents.greatest == INFINITY;
    return clamped(contents, least, greatest, type);
  }

  /// CONTENTS held within LEAST and GREATEST, both of which must be known.
  static Contents clamped(const Contents& contents, std::optional<double> least, std::optional<double> greatest,
                          DataType type) {
    if (!least || !greatest || std::isnan(*least) || std::isnan(*greatest) || *least > *greatest) return {};
    const auto held = [&](double number) { return std::clamp(number, *least, *greatest); };
    Contents result = kNothing;
    if (contents.extremes.may_hold_minus_inf) result = of_number(held(-INFINITY), type);
    if (contents.extremes.may_hold_lowest) result = either_of(result, of_number(held(lowest_finite(type)), type));
    if (contents.least > contents.greatest) return result;
    const double lowest = held(contents.least);
    const MaskContents extremes{lowest <= lowest_finite(type), lowest == -INFINITY};
    return either_of(result, {extremes, lowest, held(contents.greatest), contents.ends_alone});
  }

  /// Next to an extreme number anything may come out, but for 0.
  Contents of_sum(const Node& node, DataType type) {
    const Contents one = follow(node.input(0)), other = follow(node.input(1));
    if (is_zero(other)) return one;
    if (is_zero(one)) return node.is("Sub") ? of_negative(other, type) : other;
    if (node.is("Add") && is_finite(one) && is_masked(other)) return beside_masked(one, other, type);
    if (node.is("Add") && is_finite(other) && is_masked(one)) return beside_masked(other, one, type);
    if (!one.ordinary() || !other.ordinary()) return {};
    const bool subtracts = node.is("Sub");
    const double least = subtracts ? one.least - other.greatest : one.least + other.least;
    const double greatest = subtracts ? one.greatest - other.least : one.greatest + other.greatest;
    return are_two_numbers(one, other) ? of_two(least, greatest, type) : of_range(least, greatest, type);
  }

  /// True if CONTENTS are -inf and others of two numbers.
  static bool is_masked(const Contents& contents) {
    return contents.extremes.may_hold_minus_inf && !contents.extremes.may_hold_lowest && contents.ends_alone;
  }

  /// The sum of finite ADDED and MASKED.
  static Contents beside_masked(const Contents& added, const Contents& masked, DataType type) {
    const Contents infinite = of_number(-INFINITY, type);
    if (masked.least > masked.greatest) return infinite;
    const double least = added.least + masked.least, greatest = added.greatest + masked.greatest;
    return either_of(infinite,
                     are_two_numbers(added, masked) ? of_two(least, greatest, type) : of_range(least, greatest, type));
  }

  Contents of_product(const Node& node, DataType type) {
    const Contents one = follow(node.input(0)), other = follow(node.input(1));
    // A mask of 0 to 1 times the lowest number comes to no less than that.
    if (is_part(one) && is_lowest(other)) return {{true, false}, lowest_finite(type), 0};
    if (is_part(other) && is_lowest(one)) return {{true, false}, lowest_finite(type), 0};
    if (!one.ordinary() || !other.ordinary()) return {};
    const auto corners = {one.least * other.least, one.least * other.greatest, one.greatest * other.least,
                          one.greatest * other.greatest};
    if (are_two_numbers(one, other)) return of_two(std::min(corners), std::max(corners), type);
    return is_finite(one) && is_finite(other) ? of_range(std::min(corners), std::max(corners), type) : Contents{};
  }

  /// True if what arithmetic makes of an element of ONE and one of OTHER is one of two numbers.
  static bool are_two_numbers(const Contents& one, const Contents& other) {
    return (one.is_number() && other.ends_alone) || (other.is_number() && one.ends_alone);
  }

  static bool is_part(const Contents& contents) { return contents.ordinary() && contents.least >= 0 && contents.greatest <= 1; }
  static bool is_lowest(const Contents& contents) {
    return contents.extremes.may_hold_lowest && !contents.extremes.may_hold_minus_inf && contents.greatest <= 0;
  }
  static bool is_zero(const Contents& contents) { return contents.ordinary() && contents.is_number() && contents.least == 0; }
  static bool is_finite(const Contents& contents) {
    return contents.ordinary() && std::isfinite(contents.least) && std::isfinite(contents.greatest);
  }

  Facts& facts_;
  int nodes_ = 0;
  bool hands_nan_on_ = false;
};

}  // namespace

std::optional<double> clip_bound(const Node& node, int index, Facts& facts) {
  if (const auto* attribute = node.attribute(index == 1 ? "min" : "max")) return attribute->f();
  if (const Value* bound = node.input(index)) return facts.uniform(*bound);
  const double largest = largest_finite(facts.type(*node.outputs[0]));
  return index == 1 ? -largest : largest;
}

double absorbing_fill(DataType type) { return type == onnx::TensorProto::FLOAT16 ? -6e4 : -1e30; }

MaskContents mask_contents(Value& mask, Facts& facts) {
  Follower follower(facts);
  const Contents contents = follower.follow(&mask);
  return {contents.extremes.may_hold_lowest,
          contents.extremes.may_hold_minus_inf,
          contents.least,
          contents.greatest,
          contents.ends_alone,
          follower.may_be_nan(contents)};
}

}  // namespace attn_opt
