// Whether exponentials of rows stay within their range.
#include <algorithm>
#include <cmath>

#include "patterns/layout_checks.h"
#include "patterns/same_number.h"
#include "patterns/softmax/row_numbers.h"

namespace attn_opt {
namespace {

/// Below all scores.
constexpr double kLeastScore = -1e30;

bool is_same_place(const RowReduction& one, const RowReduction& other) {
  return one.value == other.value && one.axes == other.axes;
}

bool holds(const std::vector<RowReduction>& all, const RowReduction& one) {
  return std::ranges::any_of(all, [&](const RowReduction& other) { return is_same_place(one, other); });
}

}  // namespace

void RowNumbers::enter_maxima(RowReduction at, int steps, Maxima& maxima) {
  at = source_of(std::move(at));
  const Node* node = at.value->producer;
  const bool is_known = node && node->domain().empty() && steps > 0;
  if (facts_.uniform(*at.value).value_or(0) <= kLeastScore) return;
  if (is_known && node->is("Max")) {
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      maxima.rows.push_back(operand(*node, i, at));
      enter_maxima(maxima.rows.back(), steps - 1, maxima);
    }
    return;
  }
  const auto before = is_known && node->is("ReduceMax") ? before_reduction(*node, at, facts_) : std::nullopt;
  if (!before) {
    maxima.are_all = false;
    return;
  }
  bool has_parts = false;
  const RowReduction rows = source_of(*before);
  for (const RowReduction& part : parts_along(rows)) {
    const auto stacked = rows.value->producer ? part_in(*rows.value->producer, part) : std::nullopt;
    if (!stacked) break;
    maxima.rows.push_back(*stacked);
    enter_maxima(*stacked, steps - 1, maxima);
    has_parts = true;
  }
  if (has_parts) return;
  maxima.scores.push_back(*before);
}

RowNumbers::Maxima RowNumbers::maxima_of(const Unknown& maximum) {
  Maxima maxima;
  enter_maxima(maximum.at, 2 * kMaxTogether, maxima);
  return maxima;
}

const RowNumbers::Unknown* RowNumbers::divisor_in(const Powers& product, double times) {
  const Unknown* found = nullptr;
  for (const auto& [unknown, power] : product) {
    if (power > -kSameNumber) continue;
    if (found || std::abs(power + times) > kSameNumber || unknowns_[unknown].kind != Kind::kExponential) return nullptr;
    found = &unknowns_[unknown];
  }
  return found;
}

/// e^a / e^max(a, b)      e^a / (e^a + e^b)
bool RowNumbers::is_below_one(const RowRatio& power) {
  if (power.is_zero() || power.is(1)) return true;
  const auto inverse = power.inverse();
  const auto more = inverse ? inverse->products() : std::nullopt;
  const auto one = more ? more->find(Powers()) : ProductSum::const_iterator();
  if (more && one != more->end() && one->second > 1 - kSameNumber &&
      std::ranges::all_of(*more, [](const auto& product) { return product.second > 0; }))
    return true;
  for (size_t i = 0; i < unknowns_.size(); ++i) {
    if (unknowns_[i].kind != Kind::kExponential) continue;
    const auto whole = power.times(RowRatio::unknown(i));
    for (const RowReduction& row : whole ? maxima_of(unknowns_[i]).rows : std::vector<RowReduction>()) {
      const auto own = exponential(row);
      const auto inverse_of_own = own ? own->inverse() : std::nullopt;
      const auto left = inverse_of_own ? whole->times(*inverse_of_own) : std::nullopt;
      if (left && left->is(1)) return true;
    }
  }
  return false;
}

/// True of sums of exponentials of which one is that of 0, being the largest.
bool RowNumbers::is_above_zero(const RowRatio& divisor) {
  const auto products = divisor.products();
  if (!products || products->empty()) return false;
  const Unknown* maximum = divisor_in(products->begin()->first, 1);
  std::vector<RowReduction> summed;
  for (const auto& [powers, coefficient] : *products) {
    if (divisor_in(powers, 1) != maximum || std::abs(coefficient - 1) > kSameNumber) return false;
    for (const auto& [unknown, power] : powers) {
      if (power < kSameNumber) continue;
      const Unknown& sum = unknowns_[unknown];
      if (sum.kind != Kind::kSum || std::abs(power - 1) > kSameNumber || sum.times != 1) return false;
      summed.push_back(sum.at);
    }
  }
  if (!maximum) return false;
  const Maxima maxima = maxima_of(*maximum);
  return maxima.are_all &&
         std::ranges::all_of(maxima.scores, [&](const RowReduction& scores) { return holds(summed, scores); });
}

bool RowNumbers::is_lowered(const WeighedScores& weighed) {
  const auto products = weighed.ratio.products();
  if (!products || products->size() != 1 || !(weighed.times > 0)) return false;
  const Powers& powers = products->begin()->first;
  const Unknown* maximum = divisor_in(powers, weighed.times);
  const bool is_alone = std::ranges::all_of(powers, [](const auto& power) { return power.second < kSameNumber; });
  return maximum && is_alone && holds(maxima_of(*maximum).scores, weighed.scores);
}

bool RowNumbers::stays_in_range() {
  // What is asked on the way is read too.
  const std::vector<RowRatio> exponents = exponents_, divisors = divisors_;
  return !may_leave_range_ && std::ranges::all_of(exponents, [&](const RowRatio& power) { return is_below_one(power); }) &&
         std::ranges::all_of(divisors, [&](const RowRatio& divisor) { return is_above_zero(divisor); }) &&
         std::ranges::all_of(lowered_, [&](const WeighedScores& weighed) { return is_lowered(weighed); });
}

}  // namespace attn_opt
