#include "patterns/scores/exponential_ratio.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/same_number.h"
#include "patterns/scores/form_reader.h"
#include "patterns/softmax/lowered_scores.h"
#include "patterns/softmax/row_reduction.h"
#include "src/match/operator_map.h"

namespace attn_opt {
namespace {

constexpr int kMostRatioNodes = 40;
constexpr size_t kMostPowers = 6;

bool is_zero(double number) { return std::abs(number) <= kSameNumber; }

/// The sum of coefficients times powers of the unknown, by powers.
class PowerSum {
 public:
  PowerSum() = default;
  PowerSum(double coefficient, double power) { add(coefficient, power); }

  void add(double coefficient, double power) {
    const auto found = std::ranges::find_if(terms_, [&](const auto& term) { return is_zero(term.first - power); });
    if (found == terms_.end())
      terms_.emplace_back(power, coefficient);
    else if (is_zero(found->second += coefficient))
      terms_.erase(found);
  }
  PowerSum plus(const PowerSum& other, double times) const {
    PowerSum sum = *this;
    for (const auto& [power, coefficient] : other.terms_) sum.add(times * coefficient, power);
    return sum;
  }
  PowerSum times(const PowerSum& other) const {
    PowerSum product;
    for (const auto& [power, coefficient] : terms_)
      for (const auto& [more, by] : other.terms_) product.add(coefficient * by, power + more);
    return product;
  }
  double at(double power) const {
    const auto found = std::ranges::find_if(terms_, [&](const auto& term) { return is_zero(term.first - power); });
    return found == terms_.end() ? 0 : found->second;
  }
  const std::vector<std::pair<double, double>>& terms() const { return terms_; }
  bool has_powers() const {
    return std::ranges::any_of(terms_, [](const auto& term) { return !is_zero(term.first); });
  }
  double least_power() const { return std::ranges::min_element(terms_)->first; }

 private:
  std::vector<std::pair<double, double>> terms_;
};

struct PowerRatio {
  PowerSum above, below;

  bool is_read() const {
    const auto fits = [](const PowerSum& sum) { return sum.terms().size() <= kMostPowers; };
    return fits(above) && fits(below) && !below.terms().empty();
  }
  /// The same, of which the denominator begins with 1.
  PowerRatio reduced() const {
    const double least = below.least_power();
    const PowerSum by(1 / below.at(least), -least);
    return {above.times(by), below.times(by)};
  }
};

/// True for units that are exponentials below 0.
bool is_linear_unit(const Node& node) { return node.is("Elu") || node.is("Celu"); }

/// True if VALUE is what a number is less than the largest of its row, or than what is above that: no more than 0.
bool is_below_its_maximum(Value& value, Facts& facts) {
  return std::ranges::any_of(differences_in(value, 1, facts), [&](const Difference& found) {
    return reduced_axis_of("ReduceMax", *found.subtrahend, *found.minuend, facts) ||
           reduced_axis_of("ReduceLogSumExp", *found.subtrahend, *found.minuend, facts);
  });
}

bool are_equal(const PowerSum& one, const PowerSum& other) { return one.plus(other, -1).terms().empty(); }

class RatioReader {
 public:
  explicit RatioReader(Facts& facts) : facts_(facts) {}

  std::optional<PowerRatio> read(Value& value) {
    Value& seen = canonical(value, facts_);
    if (const auto number = facts_.uniform(seen))
      return std::isfinite(*number) ? std::optional(PowerRatio{{*number, 0}, {1, 0}}) : std::nullopt;
    const Node* node = seen.producer;
    if (!node || !node->domain().empty() || !node->input(0) || ++nodes_ > kMostRatioNodes) return std::nullopt;
    const auto ratio = computed(*node);
    return ratio && ratio->is_read() ? std::optional(ratio->reduced()) : std::nullopt;
  }

  /// True unless all that is read is Tanh.
  bool is_in_words() const { return is_in_words_; }
  /// True if exponentials are divided by others, so that Inf may be by Inf.
  bool divides_exponentials() const { return has_exponential_ && divides_; }
  /// What the unknown is exp() of.
  Value* unknown() const { return unknown_; }

 private:
  std::optional<PowerRatio> computed(const Node& node) {
    if (node.is("Exp") || node.is("Sigmoid") || node.is("Tanh")) return of_unknown(node);
    if (is_linear_unit(node)) return of_exponential_unit(node);
    if (node.is("Reciprocal")) return combined(PowerRatio{{1, 0}, {1, 0}}, inverse(read(*node.inputs[0])), true);
    const bool adds = has(node, Trait::kAdds);
    if (!adds && !has(node, Trait::kMultiplies)) return std::nullopt;
    // What is divided again and again would be read to its beginning for each division.
    if (!std::ranges::all_of(node.inputs, [this](Value* input) { return input && may_be_read(*input); })) return std::nullopt;
    auto made = std::optional(PowerRatio{{adds ? 0.0 : 1.0, 0}, {1, 0}});
    for (size_t i = 0; made && i < node.inputs.size(); ++i) {
      auto own = read(*node.inputs[i]);
      if (node.is("Div") && i == 1) own = inverse(std::move(own));
      made = combined(made, own, !adds, adds ? times_added(node, i) : 1);
    }
    return made;
  }

  /// False if nothing that makes VALUE is read. Cheap.
  bool may_be_read(Value& value) {
    static constexpr OperatorSet kRead = {"Exp", "Sigmoid", "Tanh", "Elu", "Celu", "Reciprocal"};
    Value& seen = canonical(value, facts_);
    const Node* node = seen.producer;
    const auto is_read = [node] { return kRead.has(*node) || has(*node, Trait::kAdds) || has(*node, Trait::kMultiplies); };
    return facts_.uniform(seen) || (node && is_read());
  }

  static std::optional<PowerRatio> inverse(std::optional<PowerRatio> ratio) {
    if (ratio) std::swap(ratio->above, ratio->below);
    return ratio;
  }

  /// ONE times OTHER, or plus so many TIMES it.
  std::optional<PowerRatio> combined(const std::optional<PowerRatio>& one, const std::optional<PowerRatio>& other,
                                     bool multiplies, double times = 1) {
    if (!one || !other) return std::nullopt;
    divides_ |= multiplies && ((one->above.has_powers() && other->below.has_powers()) ||
                               (one->below.has_powers() && other->above.has_powers()));
    if (multiplies) return PowerRatio{one->above.times(other->above), one->below.times(other->below)};
    if (are_equal(one->below, other->below)) return PowerRatio{one->above.plus(other->above, times), one->below};
    return PowerRatio{one->above.times(other->below).plus(other->above.times(one->below), times),
                      one->below.times(other->below)};
  }

  /// Elu(p x)  =>  a e^p - a, x being no more than 0: beyond it Elu(x) is x
  std::optional<PowerRatio> of_exponential_unit(const Node& node) {
    const double alpha = node.float_attribute("alpha", 1);
    if ((node.is("Celu") && alpha != 1) || !is_below_its_maximum(*node.inputs[0], facts_)) return std::nullopt;
    const auto power = power_of_unknown(node);
    return power ? std::optional(PowerRatio{PowerSum(alpha, *power).plus({alpha, 0}, -1), {1, 0}}) : std::nullopt;
  }

  /// p, where NODE takes p x, x being the unknown; nullopt if it takes another.
  std::optional<double> power_of_unknown(const Node& node) {
    const LinearTerms terms = linear_terms_of(*node.inputs[0], 1, facts_);
    const bool is_sum = terms.size() != 1;
    if (!unknown_) {
      unknown_ = is_sum ? &canonical(*node.inputs[0], facts_) : terms[0].value;
      unknown_terms_ = is_sum ? terms : LinearTerms{{unknown_, 1, {}}};
    }
    const auto power = times_unknown(terms);
    if (!power) return std::nullopt;
    is_in_words_ |= !node.is("Tanh");
    return power;
  }

  /// How many times the unknown TERMS add up to; nullopt if that is no number.
  std::optional<double> times_unknown(const LinearTerms& terms) const {
    std::optional<double> times;
    for (const Addend& term : terms) {
      const auto own = std::ranges::find(unknown_terms_, term.value, &Addend::value);
      const double share = own == unknown_terms_.end() ? 0 : term.coefficient / own->coefficient;
      if (share == 0 || (times && !is_zero(share - *times))) return std::nullopt;
      times = share;
    }
    return terms.size() == unknown_terms_.size() ? times : std::nullopt;
  }

  /// Exp(p x)  =>  e^p      Sigmoid(p x)  =>  e^p / (e^p + 1)      Tanh(p x)  =>  (e^2p - 1) / (e^2p + 1), where e is Exp(x)
  std::optional<PowerRatio> of_unknown(const Node& node) {
    const auto found = power_of_unknown(node);
    if (!found) return std::nullopt;
    const double power = *found;
    has_exponential_ |= node.is("Exp");
    if (node.is("Exp")) return PowerRatio{{1, power}, {1, 0}};
    if (node.is("Sigmoid")) return PowerRatio{{1, power}, PowerSum(1, power).plus({1, 0}, 1)};
    const PowerSum square(1, 2 * power);
    return PowerRatio{square.plus({1, 0}, -1), square.plus({1, 0}, 1)};
  }

  Facts& facts_;
  Value* unknown_ = nullptr;
  LinearTerms unknown_terms_;  ///< that it is the sum of
  bool is_in_words_ = false, has_exponential_ = false, divides_ = false;
  int nodes_ = 0;  ///< read so far
};

}  // namespace

std::optional<TanhOf> tanh_in(Value& value, Facts& facts) {
  RatioReader reader(facts);
  const auto ratio = reader.read(value);
  if (!ratio || !reader.is_in_words() || ratio->below.terms().size() != 2) return std::nullopt;
  // (a e^p + b) / (c e^p + 1)  =>  (a - b) / 2 * tanh(p x / 2) + (a + b) / 2, c being 1
  const auto& terms = ratio->below.terms();
  const double power = is_zero(terms[0].first) ? terms[1].first : terms[0].first;
  const double a = ratio->above.at(power), b = ratio->above.at(0);
  const size_t powers = static_cast<size_t>(!is_zero(a)) + static_cast<size_t>(!is_zero(b));
  if (!is_zero(ratio->below.at(power) - 1) || ratio->above.terms().size() != powers || is_zero(a - b)) return std::nullopt;
  return TanhOf{reader.unknown(), power / 2, (a - b) / 2, (a + b) / 2, reader.divides_exponentials()};
}

std::optional<ExponentialOf> exponential_in_ratio(Value& value, Facts& facts) {
  RatioReader reader(facts);
  const auto ratio = reader.read(value);
  if (!ratio || ratio->above.terms().empty()) return std::nullopt;
  // e^p (c e^q + 1) / (c e^q + 1)  =>  e^p, the denominator beginning with 1
  const double power = ratio->above.least_power();
  const bool is_one_power = !is_zero(power) && are_equal(ratio->above, ratio->below.times({1, power}));
  return is_one_power ? std::optional(ExponentialOf{reader.unknown(), power}) : std::nullopt;
}

std::optional<ExponentialOf> odds_of_two(Value& one, Value& other, Facts& facts) {
  RatioReader reader(facts);
  const auto share = reader.read(one), rest = share ? reader.read(other) : std::nullopt;
  // e^p / (e^p + 1) or 1 / (e^p + 1), and what is left of 1
  if (!rest || share->below.terms().size() != 2 || !are_equal(share->below, rest->below) ||
      !are_equal(share->above.plus(rest->above, 1), share->below) || share->above.terms().size() != 1)
    return std::nullopt;
  const auto& terms = share->below.terms();
  const double power = is_zero(terms[0].first) ? terms[1].first : terms[0].first;
  if (!is_zero(share->below.at(power) - 1) || is_zero(power)) return std::nullopt;
  const bool is_turned = is_zero(share->above.terms()[0].first);
  return ExponentialOf{reader.unknown(), is_turned ? -power : power};
}

}  // namespace attn_opt
