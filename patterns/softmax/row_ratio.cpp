#include "patterns/softmax/row_ratio.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "patterns/same_number.h"

namespace attn_opt {
namespace {

constexpr size_t kMostProducts = 80, kMostSums = 24;

/// Calls EACH with the power of ONE and that of OTHER of each unknown that either has, until it returns false.
template <class Each>
void for_both(const Powers& one, const Powers& other, Each each) {
  for (size_t i = 0, j = 0; i < one.size() || j < other.size();) {
    const bool is_first = j == other.size() || (i < one.size() && one[i].first <= other[j].first);
    const bool is_second = i == one.size() || (j < other.size() && other[j].first <= one[i].first);
    const size_t unknown = is_first ? one[i].first : other[j].first;
    if (!each(unknown, is_first ? one[i].second : 0.0, is_second ? other[j].second : 0.0)) return;
    i += is_first ? 1 : 0;
    j += is_second ? 1 : 0;
  }
}

/// The powers of ONE and so many TIMES those of OTHER.
Powers joined(const Powers& one, const Powers& other, double times) {
  Powers sum;
  for_both(one, other, [&](size_t unknown, double own, double more) {
    const double power = own + times * more;
    if (std::abs(power) > kSameNumber) sum.emplace_back(unknown, power);
    return true;
  });
  return sum;
}

void add(ProductSum& sum, const Powers& powers, double coefficient) {
  double& own = sum[powers];
  const double larger = std::max(std::abs(own), std::abs(coefficient));
  own += coefficient;
  if (std::abs(own) <= kSameNumber * larger) sum.erase(powers);
}

std::optional<ProductSum> product(const ProductSum& one, const ProductSum& other) {
  if (one.size() * other.size() > kMostProducts * kMostProducts) return std::nullopt;
  ProductSum made;
  for (const auto& [powers, coefficient] : one) {
    for (const auto& [more, by] : other) add(made, joined(powers, more, 1), coefficient * by);
    if (made.size() > 2 * kMostProducts) return std::nullopt;  // so many seldom cancel each other
  }
  return made.size() <= kMostProducts ? std::optional(made) : std::nullopt;
}

bool are_same(const ProductSum& one, const ProductSum& other) {
  const LessPowers less;
  return std::ranges::equal(one, other, [&](const auto& a, const auto& b) {
    return !less(a.first, b.first) && !less(b.first, a.first) &&
           std::abs(a.second - b.second) <= kSameNumber * std::max(std::abs(a.second), std::abs(b.second));
  });
}

/// ALL times FIRST.
std::optional<ProductSum> product_of_all(ProductSum first, const std::vector<ProductSum>& all) {
  std::optional<ProductSum> made = std::move(first);
  for (const ProductSum& sum : all)
    if (made) made = product(*made, sum);
  return made;
}

/// Takes out of FROM each sum that OTHERS have, once for each; what they had in common.
std::vector<ProductSum> take_common(std::vector<ProductSum>& from, std::vector<ProductSum>& others) {
  std::vector<ProductSum> common;
  for (size_t i = 0; i < from.size();) {
    const auto same = std::ranges::find_if(others, [&](const ProductSum& sum) { return are_same(from[i], sum); });
    if (same == others.end()) {
      ++i;
      continue;
    }
    others.erase(same);
    common.push_back(std::move(from[i]));
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return common;
}

}  // namespace

bool LessPowers::operator()(const Powers& one, const Powers& other) const {
  bool is_less = false;
  for_both(one, other, [&](size_t, double own, double more) {
    const bool is_same = std::abs(own - more) <= kSameNumber;
    if (!is_same) is_less = own < more;
    return is_same;
  });
  return is_less;
}

RowRatio RowRatio::number(double number) {
  RowRatio ratio;
  ratio.coefficient_ = number;
  return ratio;
}

RowRatio RowRatio::unknown(size_t index) {
  RowRatio ratio;
  ratio.powers_ = {{index, 1.0}};
  return ratio;
}

bool RowRatio::is(double number) const {
  if (is_zero() || number == 0) return coefficient_ == number;
  const auto above = product_of_all({{powers_, coefficient_ / number}}, above_),
             below = product_of_all({{Powers(), 1}}, below_);
  return above && below && are_same(*above, *below);
}

size_t RowRatio::work() const {
  size_t work = 0;
  for (const auto* sums : {&above_, &below_})
    for (const ProductSum& sum : *sums) work += sum.size() * sum.size();
  return work;
}

std::optional<ProductSum> RowRatio::products() const {
  return below_.empty() ? product_of_all({{powers_, coefficient_}}, above_) : std::nullopt;
}

void RowRatio::multiply_with(ProductSum sum) {
  if (sum.empty()) {
    *this = number(0);
    return;
  }
  const auto [first, coefficient] = *sum.begin();
  coefficient_ *= coefficient;
  powers_ = joined(powers_, first, 1);
  if (sum.size() == 1) return;
  ProductSum rest;
  for (const auto& [powers, own] : sum) rest.emplace(joined(powers, first, -1), own / coefficient);
  above_.push_back(std::move(rest));
  cancel();
}

void RowRatio::cancel() { take_common(above_, below_); }

std::optional<RowRatio> RowRatio::times(const RowRatio& other) const {
  if (is_zero() || other.is_zero()) return number(0);
  RowRatio made = *this;
  made.coefficient_ *= other.coefficient_;
  made.powers_ = joined(powers_, other.powers_, 1);
  made.above_.insert(made.above_.end(), other.above_.begin(), other.above_.end());
  made.below_.insert(made.below_.end(), other.below_.begin(), other.below_.end());
  made.cancel();
  return made.above_.size() + made.below_.size() <= kMostSums ? std::optional(made) : std::nullopt;
}

std::optional<RowRatio> RowRatio::inverse() const {
  if (is_zero()) return std::nullopt;
  RowRatio made = *this;
  made.coefficient_ = 1 / coefficient_;
  made.powers_ = joined({}, powers_, -1);
  std::swap(made.above_, made.below_);
  return made;
}

std::optional<RowRatio> RowRatio::plus(const RowRatio& other, double times) const {
  if (other.is_zero() || times == 0) return *this;
  if (is_zero()) return other.times(number(times));
  RowRatio made;
  std::vector<ProductSum> above = above_, other_above = other.above_, below = below_, other_below = other.below_;
  made.above_ = take_common(above, other_above);
  made.below_ = take_common(below, other_below);
  // Over one denominator: that of both, and what each has beside it.
  above.insert(above.end(), other_below.begin(), other_below.end());
  other_above.insert(other_above.end(), below.begin(), below.end());
  made.below_.insert(made.below_.end(), below.begin(), below.end());
  made.below_.insert(made.below_.end(), other_below.begin(), other_below.end());
  auto sum = product_of_all({{powers_, coefficient_}}, above);
  const auto more = product_of_all({{other.powers_, times * other.coefficient_}}, other_above);
  if (!sum || !more || made.below_.size() > kMostSums) return std::nullopt;
  for (const auto& [powers, coefficient] : *more) add(*sum, powers, coefficient);
  if (sum->size() > kMostProducts) return std::nullopt;
  made.multiply_with(*std::move(sum));
  return made;
}

std::optional<RowRatio> RowRatio::power(double exponent) const {
  constexpr double kMostMultiplied = 4;
  if (exponent < 0) {
    const auto inverted = inverse();
    return inverted ? inverted->power(-exponent) : std::nullopt;
  }
  if (above_.empty() && below_.empty() && coefficient_ > 0) {
    RowRatio made = number(std::pow(coefficient_, exponent));
    made.powers_ = joined({}, powers_, exponent);
    return made;
  }
  if (exponent != std::floor(exponent) || exponent > kMostMultiplied) return std::nullopt;
  std::optional<RowRatio> made = number(1);
  for (double done = 0; done < exponent && made; ++done) made = made->times(*this);
  return made;
}

}  // namespace attn_opt
