#include "patterns/scores/exponential_ratio.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "attn_opt/canonical.h"
#include "patterns/scores/form_reader.h"

namespace attn_opt {
namespace {

constexpr int kMaxRatioDepth = 10;
constexpr size_t kMostPowers = 6;
/// Coefficients and powers are the same up to this.
constexpr double kSameCoefficient = 1e-6;

bool is_zero(double number) { return std::abs(number) <= kSameCoefficient; }

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

bool are_equal(const PowerSum& one, const PowerSum& other) { return one.plus(other, -1).terms().empty(); }

class RatioReader {
 public:
  explicit RatioReader(Facts& facts) : facts_(facts) {}

  std::optional<PowerRatio> read(Value& value) {
    Value& seen = canonical(value, facts_);
    if (const auto number = facts_.uniform(seen))
      return std::isfinite(*number) ? std::optional(PowerRatio{{*number, 0}, {1, 0}}) : std::nullopt;
    const Node* node = seen.producer;
    if (!node || !node->domain().empty() || !node->input(0) || ++depth_ > kMaxRatioDepth) return std::nullopt;
    auto ratio = computed(*node);
    --depth_;
    return ratio && ratio->is_read() ? std::optional(ratio->reduced()) : std::nullopt;
  }

  /// True unless all that is read is Tanh.
  bool is_in_words() const { return is_in_words_; }
  /// What the unknown is exp() of.
  Value* unknown() const { return unknown_; }

 private:
  std::optional<PowerRatio> computed(const Node& node) {
    if (node.is("Exp") || node.is("Sigmoid") || node.is("Tanh")) return of_unknown(node);
    if (node.is("Neg")) return combined(read(*node.inputs[0]), PowerRatio{{-1, 0}, {1, 0}}, true);
    if (node.is("Reciprocal")) return combined(PowerRatio{{1, 0}, {1, 0}}, inverse(read(*node.inputs[0])), true);
    if (node.inputs.size() != 2 || !node.input(1)) return std::nullopt;
    if (node.is("Mul")) return combined(read(*node.inputs[0]), read(*node.inputs[1]), true);
    if (node.is("Div")) return combined(read(*node.inputs[0]), inverse(read(*node.inputs[1])), true);
    if (node.is("Add") || node.is("Sub"))
      return combined(read(*node.inputs[0]), read(*node.inputs[1]), false, node.is("Sub") ? -1 : 1);
    return std::nullopt;
  }

  static std::optional<PowerRatio> inverse(std::optional<PowerRatio> ratio) {
    if (ratio) std::swap(ratio->above, ratio->below);
    return ratio;
  }

  /// ONE times OTHER, or plus so many TIMES it.
  static std::optional<PowerRatio> combined(const std::optional<PowerRatio>& one, const std::optional<PowerRatio>& other,
                                            bool multiplies, double times = 1) {
    if (!one || !other) return std::nullopt;
    if (multiplies) return PowerRatio{one->above.times(other->above), one->below.times(other->below)};
    if (are_equal(one->below, other->below)) return PowerRatio{one->above.plus(other->above, times), one->below};
    return PowerRatio{one->above.times(other->below).plus(other->above.times(one->below), times),
                      one->below.times(other->below)};
  }

  /// Exp(p x)  =>  e^p      Sigmoid(p x)  =>  e^p / (e^p + 1)      Tanh(p x)  =>  (e^2p - 1) / (e^2p + 1), where e is Exp(x)
  std::optional<PowerRatio> of_unknown(const Node& node) {
    std::vector<Addend> terms = FormReader(facts_, true).linear_terms(*node.inputs[0]);
    if (terms.size() != 1) terms = {{&canonical(*node.inputs[0], facts_), 1, {}}};
    if (unknown_ && unknown_ != terms[0].value) return std::nullopt;
    is_in_words_ |= !node.is("Tanh");
    unknown_ = terms[0].value;
    const double power = terms[0].coefficient;
    if (node.is("Exp")) return PowerRatio{{1, power}, {1, 0}};
    if (node.is("Sigmoid")) return PowerRatio{{1, power}, PowerSum(1, power).plus({1, 0}, 1)};
    const PowerSum square(1, 2 * power);
    return PowerRatio{square.plus({1, 0}, -1), square.plus({1, 0}, 1)};
  }

  Facts& facts_;
  Value* unknown_ = nullptr;
  bool is_in_words_ = false;
  int depth_ = 0;
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
  return TanhOf{reader.unknown(), power / 2, (a - b) / 2, (a + b) / 2};
}

}  // namespace attn_opt
