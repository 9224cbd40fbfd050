#include "patterns/softmax/row_numbers.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/layout_checks.h"
#include "patterns/softmax/cut_exponentials.h"
#include "patterns/softmax/row_sum.h"
#include "src/match/cut_range.h"
#include "src/match/node_forms.h"

namespace attn_opt {
namespace {

constexpr int kMostRowNodes = 1200;
/// So many products of sums are as much work as another node.
constexpr size_t kProductsOfNode = 200;
constexpr int64_t kMostParts = 16;
/// The first of stacked parts, as an axis; those behind it are less.
constexpr int kFirstPart = -16;
constexpr int kNoSuchAxis = -1;
/// Beyond this exp() of a number is not worth having.
constexpr double kMostExponent = 80;

bool has_keys(const RowReduction& at) { return std::ranges::find(at.axes, RowReduction::kTaken) != at.axes.end(); }

const Node* maker_of(const RowReduction& at) {
  const Node* node = at.value->producer;
  return node && node->domain().empty() && at.value->output == 0 && node->input(0) ? node : nullptr;
}

bool is_sum_in_words(const Node& node) {
  return node.is("MatMul") || node.is("Einsum") || node.is("ReduceL1") || node.is("ReduceMean");
}

std::optional<RowRatio> times(const std::optional<RowRatio>& one, const std::optional<RowRatio>& other) {
  return one && other ? one->times(*other) : std::nullopt;
}

}  // namespace

RowReduction RowNumbers::operand(const Node& node, size_t input, const RowReduction& at) {
  return placed(*node.inputs[input], at);
}

/// VALUE, which broadcasts to AT.
RowReduction RowNumbers::placed(Value& value, const RowReduction& at) {
  RowReduction placed = placed_in(value, at.axes.size(), facts_);
  for (int& axis : placed.axes)
    if (axis >= 0) axis = at.axes[static_cast<size_t>(axis)];
  return placed;
}

RowReduction RowNumbers::source_of(RowReduction at) {
  for (int step = 0; step < kMaxTogether; ++step) {
    at = before_moves(std::move(at), facts_);
    Value& before = before_float_casts(*at.value, facts_);
    if (&before == at.value) break;
    at.value = &before;
  }
  return at;
}

std::optional<RowReduction> RowNumbers::part_in(const Node& node, const RowReduction& at) {
  const auto part = std::ranges::find_if(at.axes, [](int axis) { return axis <= kFirstPart; });
  if (part == at.axes.end() || !node.is("Concat")) return std::nullopt;
  const auto rank = std::ssize(at.axes), axis = part - at.axes.begin();
  if (axis_in(node.int_attribute("axis", 0), at.axes.size()) != static_cast<size_t>(axis)) return std::nullopt;
  const auto index = static_cast<size_t>(kFirstPart - *part);
  for (Value* input : node.inputs) {
    const MaybeShape shape = facts_.shape(*input);
    if (!shape || std::ssize(*shape) != rank || !(*shape)[static_cast<size_t>(axis)].is(1)) return std::nullopt;
  }
  if (index >= node.inputs.size()) return std::nullopt;
  RowReduction placed{&canonical(*node.inputs[index], facts_), at.axes, nullptr};
  placed.axes[static_cast<size_t>(axis)] = kNoSuchAxis;
  return placed;
}

bool RowNumbers::stacks_parts(const RowReduction& at) {
  const Node* node = maker_of(at);
  const std::vector<RowReduction> parts = node && node->is("Concat") ? parts_along(at) : std::vector<RowReduction>();
  return !parts.empty() && part_in(*node, parts.front());
}

std::vector<RowReduction> RowNumbers::parts_along(const RowReduction& at) {
  const MaybeShape shape = facts_.shape(*at.value);
  const auto axis = std::ranges::find(at.axes, RowReduction::kTaken) - at.axes.begin();
  if (!shape || shape->size() != at.axes.size() || axis == std::ssize(at.axes)) return {};
  const Dim& size = (*shape)[static_cast<size_t>(axis)];
  if (!size.is_constant() || size.value() > kMostParts) return {};
  std::vector<RowReduction> parts(static_cast<size_t>(size.value()), at);
  for (size_t i = 0; i < parts.size(); ++i) parts[i].axes[static_cast<size_t>(axis)] = kFirstPart - static_cast<int>(i);
  return parts;
}

size_t RowNumbers::unknown(Kind kind, const RowReduction& at) {
  const auto is_same = [&](const Unknown& other) {
    return other.kind == kind && other.value == at.value && other.axes == at.axes;
  };
  const auto found = std::ranges::find_if(unknowns_, is_same);
  if (found != unknowns_.end()) return static_cast<size_t>(found - unknowns_.begin());
  unknowns_.push_back({kind, at.value, at.axes, 1, at});
  return unknowns_.size() - 1;
}

/// The unknown that the sum of exp() of so many TIMES the SCORES is, in whatever words these are, and however they lie.
size_t RowNumbers::sum_of(const RowReduction& scores, double times) {
  RowReduction source = source_of(scores);
  // An axis that the keys were given by repetition counts as often as it has elements.
  if (!has_keys(source)) source = {&before_float_casts(*scores.value, facts_), scores.axes, nullptr};
  const LinearTerms terms = linear_terms_of(*source.value, times, facts_);
  const auto is_same = [&](const Unknown& other) {
    return other.kind == Kind::kSum && other.axes == source.axes && are_same_terms(other.terms, terms);
  };
  const auto found = std::ranges::find_if(unknowns_, is_same);
  if (found != unknowns_.end()) return static_cast<size_t>(found - unknowns_.begin());
  unknowns_.push_back({Kind::kSum, source.value, source.axes, times, scores, terms});
  return unknowns_.size() - 1;
}

std::optional<RowRatio> RowNumbers::number(RowReduction at) {
  at = source_of(std::move(at));
  if (at.axes.empty() && !facts_.uniform(*at.value)) return std::nullopt;
  if (const auto number = facts_.uniform(*at.value))
    return std::isfinite(*number) ? std::optional(RowRatio::number(*number)) : std::nullopt;
  if (has_keys(at)) return std::nullopt;
  const Key key{at.value, at.axes};
  if (const auto known = numbers_.find(key); known != numbers_.end()) return known->second;
  auto made = ++nodes_ > kMostRowNodes ? std::nullopt : computed_number(at);
  if (made) nodes_ += static_cast<int>(made->work() / kProductsOfNode);
  return numbers_[key] = made ? made : leaf(Kind::kItself, at);
}

std::optional<RowRatio> RowNumbers::exponential(RowReduction at) {
  at = source_of(std::move(at));
  const auto number = facts_.uniform(*at.value);
  if (number && (*number == -INFINITY || std::abs(*number) <= kMostExponent)) return RowRatio::number(std::exp(*number));
  if (has_keys(at) || (at.axes.empty() && !number)) return std::nullopt;
  const Key key{at.value, at.axes};
  if (const auto known = exponentials_.find(key); known != exponentials_.end()) return known->second;
  auto made = ++nodes_ > kMostRowNodes ? std::nullopt : computed_exponential(at);
  if (made) nodes_ += static_cast<int>(made->work() / kProductsOfNode);
  return exponentials_[key] = made ? made : leaf(Kind::kExponential, at);
}

/// What AT is one part of along an axis; nullopt if it is none.
std::optional<RowReduction> RowNumbers::uncut(const RowReduction& at) {
  const Node* node = at.value->producer;
  const auto range = node && cuts_out(*node) ? cut_range(*at.value, facts_) : std::nullopt;
  if (!range || !range->count.is(1) || !range->first.is_constant() || range->first.value() > kMostParts) return std::nullopt;
  RowReduction whole{&canonical(*range->source, facts_), at.axes, nullptr};
  const MaybeShape shape = facts_.shape(*whole.value);
  const auto axis = whole.axes.begin() + static_cast<std::ptrdiff_t>(range->axis);
  if (shape && shape->size() == at.axes.size() + 1)
    whole.axes.insert(axis, kNoSuchAxis);
  else if (!shape || shape->size() != at.axes.size())
    return std::nullopt;
  whole.axes[range->axis] = kFirstPart - static_cast<int>(range->first.value());
  return whole;
}

std::optional<RowRatio> RowNumbers::computed_number(const RowReduction& at) {
  const Node* node = maker_of(at);
  // The product of exponentials and ones that stand beside V.
  if (node && cuts_out(*node))
    if (auto sum = summed_in_words(at)) return sum;
  if (const auto whole = uncut(at)) return number(*whole);
  if (!node) return std::nullopt;
  if (const auto part = part_in(*node, at)) return number(*part);
  if (auto power = exponential_in(at)) return power;
  const auto own = [&](size_t input) { return number(operand(*node, input, at)); };
  if (has(*node, Trait::kAdds)) return added(*node, at);
  if (node->is("Mul")) return times(own(0), own(1));
  if (node->is("Div")) return times(own(0), divided(own(1)));
  if (node->is("Reciprocal")) return divided(own(0));
  if (node->is("Softmax")) return share_of_parts(*node, at);
  if (node->is("ReduceSum")) return summed(*node, at, false);
  if (is_sum_in_words(*node)) return summed_in_words(at);
  if (node->is("Pow") || node->is("Sqrt")) {
    const auto number = node->is("Sqrt") ? std::optional(0.5) : facts_.uniform(*node->inputs[1]);
    const auto base = number && std::isfinite(*number) ? own(0) : std::nullopt;
    if (base && *number < 0) divisors_.push_back(*base);
    return base ? base->power(*number) : std::nullopt;
  }
  // Sigmoid(x)  =>  e^x / (e^x + 1)
  const auto power = node->is("Sigmoid") ? exponential(operand(*node, 0, at)) : std::nullopt;
  const auto more = power ? power->plus(RowRatio::number(1)) : std::nullopt;
  return more ? times(power, more->inverse()) : std::nullopt;
}

/// AT, if it is exp() of numbers of rows, in whatever words (exponentials.h).
std::optional<RowRatio> RowNumbers::exponential_in(const RowReduction& at) {
  const auto exponent = exponent_in(*at.value, reader_, context_);
  const auto own = exponent ? exponential(placed(*exponent->value, at)) : std::nullopt;
  const auto power = own ? own->power(exponent->factor) : std::nullopt;
  if (power) exponents_.push_back(*power);
  if (power) note_range(*exponent);
  return power;
}

std::optional<RowRatio> RowNumbers::computed_exponential(const RowReduction& at) {
  if (const auto whole = uncut(at)) return exponential(*whole);
  const Node* node = maker_of(at);
  if (!node) return std::nullopt;
  if (const auto part = part_in(*node, at)) return exponential(*part);
  const auto own = [&] { return operand(*node, 0, at); };
  if (has(*node, Trait::kAdds)) return exponential_of_sum(*node, at, 1);
  if (node->is("Mul") || node->is("Div")) return exponential_of_multiple(*node, at);
  if (node->is("ReduceLogSumExp")) {
    may_leave_range_ = true;
    return summed(*node, at, true);
  }
  if (!node->is("Log") && !node->is("ReduceLogSum") && !node->is("Softplus")) return std::nullopt;
  may_leave_range_ = true;
  if (node->is("ReduceLogSum")) return summed(*node, at, false);
  if (node->is("Log")) return number(own());
  const auto power = exponential(own());
  return power ? power->plus(RowRatio::number(1)) : std::nullopt;
}

std::optional<RowRatio> RowNumbers::added(const Node& node, const RowReduction& at) {
  std::optional<RowRatio> sum = RowRatio::number(0);
  for (size_t i = 0; i < node.inputs.size() && sum; ++i) {
    const auto own = number(operand(node, i, at));
    sum = own ? sum->plus(*own, times_added(node, i)) : std::nullopt;
  }
  return sum;
}

/// exp() of so many TIMES what NODE adds up.
std::optional<RowRatio> RowNumbers::exponential_of_sum(const Node& node, const RowReduction& at, double times) {
  std::optional<RowRatio> product = RowRatio::number(1);
  for (size_t i = 0; i < node.inputs.size() && product; ++i) {
    const auto own = exponential(operand(node, i, at));
    const auto power = own ? own->power(times * times_added(node, i)) : std::nullopt;
    product = power ? product->times(*power) : std::nullopt;
  }
  return product;
}

std::optional<RowRatio> RowNumbers::exponential_of_multiple(const Node& node, const RowReduction& at) {
  for (const size_t i : {0, 1}) {
    const auto number = facts_.uniform(*node.inputs[1 - i]);
    if (!number || !std::isfinite(*number) || *number == 0 || (node.is("Div") && i == 1)) continue;
    const double times = node.is("Div") ? 1 / *number : *number;
    const RowReduction one = source_of(operand(node, i, at));
    const Node* sum = maker_of(one);
    if (sum && has(*sum, Trait::kAdds)) return exponential_of_sum(*sum, one, times);
    const auto own = exponential(one);
    return own ? own->power(times) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<RowRatio> RowNumbers::divided(std::optional<RowRatio> divisor) {
  if (!divisor) return std::nullopt;
  divisors_.push_back(*divisor);
  return divisor->inverse();
}

std::optional<RowRatio> RowNumbers::summed(const Node& node, const RowReduction& at, bool of_exponentials) {
  auto before = before_reduction(node, at, facts_);
  if (!before) return std::nullopt;
  before = source_of(*std::move(before));
  if (const auto weighed = of_exponentials ? exponentials_of({before->value}, *before) : weights(*before)) {
    return weighed->ratio.times(RowRatio::unknown(weighed->sum));
  }
  return sum_of_parts(*before, of_exponentials);
}

/// What the parts stacked along AT's axis kTaken, or their exponentials, add up to; nullopt if there are none.
std::optional<RowRatio> RowNumbers::sum_of_parts(const RowReduction& at, bool of_exponentials) {
  const std::vector<RowReduction> parts = parts_along(at);
  std::optional<RowRatio> sum = RowRatio::number(0);
  for (const RowReduction& part : parts) {
    const auto own = of_exponentials ? exponential(part) : number(part);
    sum = sum && own ? sum->plus(*own) : std::nullopt;
  }
  return parts.empty() ? std::nullopt : sum;
}

/// Sums of exponentials in other words than ReduceSum (row_sum.h).
std::optional<RowRatio> RowNumbers::summed_in_words(const RowReduction& at) {
  const auto sum = row_sum(*at.value, false, at.axes.size(), reader_, context_);
  if (!sum || !sum->others.empty() || sum->is_never_zero) return std::nullopt;
  RowReduction terms = sum->rows;
  for (int& axis : terms.axes)
    if (axis >= 0) axis = at.axes[static_cast<size_t>(axis)];
  const auto weighed = weights(terms);
  return weighed ? times(weighed->ratio.times(RowRatio::unknown(weighed->sum)), RowRatio::number(sum->factor)) : std::nullopt;
}

void RowNumbers::note_range(const Exponent& exponent) {
  constexpr double kMostPower = 16;
  may_leave_range_ |= exponent.is_product;
  exponent_power_ = std::max(exponent_power_, std::min(kMostPower, 1 / std::abs(exponent.factor)));
}

/// Softmax(x) along stacked parts  =>  e^x of one / the sum of those of all
std::optional<RowRatio> RowNumbers::share_of_parts(const Node& node, const RowReduction& at) {
  const auto part = std::ranges::find_if(at.axes, [](int axis) { return axis <= kFirstPart; });
  const auto axis = static_cast<size_t>(part - at.axes.begin());
  const MaybeShape shape = facts_.shape(*node.inputs[0]);
  if (part == at.axes.end() || !shape || only_softmax_axis(node, *shape) != axis) return std::nullopt;
  RowReduction all{&canonical(*node.inputs[0], facts_), at.axes, nullptr}, one = all;
  all.axes[axis] = RowReduction::kTaken;
  const auto sum = sum_of_parts(all, true);
  return sum ? times(exponential(one), sum->inverse()) : std::nullopt;
}

bool RowNumbers::takes_row(const Node& node, size_t input, const RowReduction& at) {
  return input < node.inputs.size() && !has_keys(operand(node, input, at)) && facts_.shape(*node.inputs[input]);
}

std::optional<WeighedScores> RowNumbers::weights(RowReduction at) {
  at = source_of(std::move(at));
  const auto keys = static_cast<size_t>(std::ranges::find(at.axes, RowReduction::kTaken) - at.axes.begin());
  if (Value* within = has_keys(at) ? cut_within(*at.value, keys, reader_, context_) : nullptr) at.value = within;
  const Node* node = has_keys(at) ? maker_of(at) : nullptr;
  if (!node || ++nodes_ > kMostRowNodes) return std::nullopt;
  if (const auto exponent = exponent_in(*at.value, reader_, context_)) {
    auto weighed = exponentials_of(*exponent, at);
    if (weighed) lowered_.push_back(*weighed);
    if (weighed) note_range(*exponent);
    return weighed;
  }
  if (node->is("Softmax")) return normalised(*node, at);
  return node->is("Mul") || node->is("Div") ? scaled(*node, at) : std::nullopt;
}

/// Softmax(x)  =>  exp(x) / sum(exp(x))
std::optional<WeighedScores> RowNumbers::normalised(const Node& node, const RowReduction& at) {
  const auto keys = static_cast<size_t>(std::ranges::find(at.axes, RowReduction::kTaken) - at.axes.begin());
  const MaybeShape shape = facts_.shape(*node.inputs[0]);
  if (!shape || only_softmax_axis(node, *shape) != keys) return std::nullopt;
  auto weighed = exponentials_of({node.inputs[0]}, at);
  if (weighed) weighed->ratio = *RowRatio::unknown(weighed->sum).inverse();
  return weighed;
}

/// e * r      e / r
std::optional<WeighedScores> RowNumbers::scaled(const Node& node, const RowReduction& at) {
  for (const size_t i : {0, 1}) {
    if (!takes_row(node, 1 - i, at) || (node.is("Div") && i == 1)) continue;
    RowReduction exponentials = operand(node, i, at);
    const auto keys = static_cast<size_t>(std::ranges::find(at.axes, RowReduction::kTaken) - at.axes.begin());
    const MaybeShape shape = facts_.shape(*at.value);
    // A single key is an axis of size 1 as the numbers of rows have.
    const bool fits = shape && shape->size() == at.axes.size() && exponentials.axes.size() == at.axes.size();
    if (fits && (*shape)[keys].is(1)) exponentials.axes[keys] = RowReduction::kTaken;
    auto weighed = weights(std::move(exponentials));
    if (!weighed) continue;
    auto factor = number(operand(node, 1 - i, at));
    if (node.is("Div")) factor = divided(factor);
    const auto ratio = times(weighed->ratio, factor);
    if (!ratio) return std::nullopt;
    weighed->ratio = *ratio;
    return weighed;
  }
  return std::nullopt;
}

/// exp() of POWER, scores so many times, less numbers for each row, which lies as AT does.
std::optional<WeighedScores> RowNumbers::exponentials_of(Exponent power, const RowReduction& at) {
  const auto keys = std::ranges::find(at.axes, RowReduction::kTaken);
  WeighedScores weighed;
  for (bool is_lowered = true; is_lowered && ++nodes_ <= kMostRowNodes;) {
    const MaybeShape shape = facts_.shape(*power.value);
    if (!shape || shape->size() != at.axes.size() || keys == at.axes.end()) return std::nullopt;
    const LoweredScores found = lowered_scores(power, static_cast<size_t>(at.axes.end() - keys) - 1, reader_, context_);
    is_lowered = found.lowered_by != nullptr;
    auto factor = is_lowered ? exponential(placed(*found.lowered_by, at)) : RowRatio::number(1);
    if (factor && is_lowered) factor = factor->power(-found.factor);
    factor = times(factor, RowRatio::number(std::exp(found.number)));
    const auto ratio = std::abs(found.number) <= kMostExponent ? times(weighed.ratio, factor) : std::nullopt;
    if (!ratio) return std::nullopt;
    weighed.ratio = *ratio;
    power = {found.scores, found.factor};
  }
  weighed.times = power.factor;
  weighed.scores = {&canonical(*power.value, facts_), at.axes, nullptr};
  if (stacks_parts(weighed.scores)) return std::nullopt;
  weighed.sum = sum_of(weighed.scores, weighed.times);
  return weighed;
}

}  // namespace attn_opt
