#include "src/match/facts/integer_range.h"

#include <algorithm>
#include <cmath>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"

namespace attn_opt {
namespace {

using Range = std::optional<IntegerRange>;

constexpr int kMostIntegerNodes = 32;
constexpr double kLargestSize = 0x1p31;
/// Up to here a double holds every integer.
constexpr double kExact = 0x1p53;

Range joined(const Range& one, const Range& other) {
  if (!one || !other) return std::nullopt;
  return IntegerRange{std::min(one->least, other->least), std::max(one->greatest, other->greatest)};
}

/// Of SIZE, an expression of sizes; of products of them nothing is said.
Range of_size(const Dim& size) {
  if (!size.from_sizes()) return std::nullopt;
  IntegerRange range;
  for (const Dim::Term& term : size.terms()) {
    if (term.factors.size() > 1 || (term.factors.size() == 1 && term.factors[0]->kind != Atom::Kind::kSymbol))
      return std::nullopt;
    const double most = static_cast<double>(term.coefficient) * (term.factors.empty() ? 1 : kLargestSize);
    range.least += term.factors.empty() ? most : std::min(most, 0.0);
    range.greatest += term.factors.empty() ? most : std::max(most, 0.0);
  }
  if (size.never_negative()) range.least = std::max(range.least, 0.0);
  return range;
}

/// Of what lies between the corners that COMBINE makes of the ends of ONE and OTHER.
template <class Combine>
Range of_corners(const Range& one, const Range& other, const Combine& combine) {
  if (!one || !other) return std::nullopt;
  const auto corners = {combine(one->least, other->least), combine(one->least, other->greatest),
                        combine(one->greatest, other->least), combine(one->greatest, other->greatest)};
  return IntegerRange{std::min(corners), std::max(corners)};
}

class IntegerFollower {
 public:
  explicit IntegerFollower(Facts& facts) : facts_(facts) {}

  Range follow(Value* value) {
    if (!value) return std::nullopt;
    Value& seen = canonical(*value, facts_);
    const DataType type = facts_.type(seen);
    if (type == onnx::TensorProto::BOOL) return IntegerRange{0, 1};
    Range range = known(seen);
    if (!range && ++nodes_ <= kMostIntegerNodes) range = computed(seen);
    const IntegerRange held = range_of_integers(type);
    return range && held.least <= range->least && range->greatest <= held.greatest ? range : std::nullopt;
  }

 private:
  Range known(const Value& value) {
    if (const IntegerData* data = facts_.integers(value); data && !data->values.empty()) {
      Range range = of_size(data->values.front());
      for (const Dim& size : data->values) range = joined(range, of_size(size));
      return range;
    }
    if (const auto number = facts_.uniform(value)) return IntegerRange{*number, *number};
    const Tensor* constant = facts_.constant(value);
    const auto numbers = constant ? constant->cast(onnx::TensorProto::DOUBLE) : Expected<Tensor>(Tensor());
    if (!constant || !numbers || numbers->size() == 0) return std::nullopt;
    const auto [least, greatest] = std::ranges::minmax(numbers->data<double>());
    return IntegerRange{least, greatest};
  }

  Range computed(const Value& value) {
    const Node* node = value.producer;
    if (!node || !node->domain().empty()) return std::nullopt;
    if (has(*node, Trait::kMoves)) return follow(node->input(0));
    if (node->is("Cast")) return is_floating(facts_.type(*node->inputs[0])) ? std::nullopt : follow(node->input(0));
    if (node->is("Range")) return of_positions(*node);
    if (node->is("Concat") || node->is("Where")) return of_all(*node, node->is("Where") ? 1 : 0);
    if (node->is("Neg")) return of_corners(follow(node->input(0)), IntegerRange{}, [](double x, double) { return -x; });
    if (node->is("Abs")) return of_magnitude(follow(node->input(0)));
    if (node->inputs.size() == 2) return of_two(*node);
    return std::nullopt;
  }

  Range of_two(const Node& node) {
    const Range one = follow(node.input(0)), other = follow(node.input(1));
    if (node.is("Add")) return of_corners(one, other, [](double a, double b) { return a + b; });
    if (node.is("Sub")) return of_corners(one, other, [](double a, double b) { return a - b; });
    if (node.is("Mul")) return of_corners(one, other, [](double a, double b) { return a * b; });
    if (node.is("Max")) return of_corners(one, other, [](double a, double b) { return std::max(a, b); });
    if (node.is("Min")) return of_corners(one, other, [](double a, double b) { return std::min(a, b); });
    if (node.is("CumSum") && one)
      return IntegerRange{std::min(one->least, 0.0) * kLargestSize, std::max(one->greatest, 0.0) * kLargestSize};
    return std::nullopt;
  }

  Range of_all(const Node& node, size_t first) {
    Range range = follow(node.input(first));
    for (size_t i = first + 1; i < node.inputs.size(); ++i) range = joined(range, follow(node.inputs[i]));
    return range;
  }

  /// Of numbers from the start on to the limit, which is none of them.
  Range of_positions(const Node& node) {
    const Range start = follow(node.input(0)), limit = follow(node.input(1)), step = follow(node.input(2));
    if (!start || !limit || !step) return std::nullopt;
    if (step->least > 0) return IntegerRange{start->least, std::max(start->greatest, limit->greatest - 1)};
    if (step->greatest < 0) return IntegerRange{std::min(start->least, limit->least + 1), start->greatest};
    return std::nullopt;
  }

  static Range of_magnitude(const Range& range) {
    if (!range) return std::nullopt;
    const bool holds_zero = range->least <= 0 && range->greatest >= 0;
    const double one = std::abs(range->least), other = std::abs(range->greatest);
    return IntegerRange{holds_zero ? 0 : std::min(one, other), std::max(one, other)};
  }

  Facts& facts_;
  int nodes_ = 0;
};

}  // namespace

IntegerRange range_of_integers(DataType type) {
  using P = onnx::TensorProto;
  const bool is_unsigned = type == P::UINT8 || type == P::UINT16 || type == P::UINT32 || type == P::UINT64;
  const double most = std::min(kExact, std::ldexp(1.0, 8 * static_cast<int>(element_size(type)) - (is_unsigned ? 0 : 1)) - 1);
  return {is_unsigned ? 0 : -most, most};
}

std::optional<IntegerRange> integer_range(Value& value, Facts& facts) { return IntegerFollower(facts).follow(&value); }

}  // namespace attn_opt
