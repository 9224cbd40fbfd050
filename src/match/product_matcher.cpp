// Products in any order: 0.5 * x * (1 + erf(...)) has a dozen spellings and is one.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "attn_opt/canonical.h"
#include "attn_opt/matcher.h"
#include "src/match/match_trial.h"

namespace attn_opt {
namespace {

/// Ways of taking a product apart that are tried; each Mul may be a factor itself.
constexpr int kMostWays = 64;

/// A product as far as it is taken apart.
struct Product {
  double coefficient = 1;
  std::vector<Value*> factors;
  size_t whole = 0;  ///< so many of the factors are not taken apart
};

class ProductMatch {
 public:
  ProductMatch(const std::vector<Matcher>& factors, Facts& facts) : matchers_(factors), facts_(facts) {}

  /// True if VALUE is a product as is wanted whose numbers pass TEST.
  bool match(Value& value, const std::function<bool(double)>& test) { return search(with({}, value), test); }

 private:
  /// PRODUCT times VALUE.
  Product with(Product product, Value& value) {
    if (const auto known = facts_.uniform(value))
      product.coefficient *= *known;
    else
      product.factors.push_back(&value);
    return product;
  }

  /// Factors are taken apart where they can be, before they are tried whole: a number in them is then one of the coefficient's.
  bool search(Product product, const std::function<bool(double)>& test) {
    if (++ways_ > kMostWays || product.factors.size() > matchers_.size()) return false;
    if (product.whole == product.factors.size())
      return product.factors.size() == matchers_.size() && test(product.coefficient) && fits(product.factors);
    if (expanded(product, test)) return true;
    ++product.whole;
    return search(std::move(product), test);
  }

  /// search() with the first factor that may be taken apart so taken.
  bool expanded(const Product& product, const std::function<bool(double)>& test) {
    const Node* node = canonical(*product.factors[product.whole], facts_).producer;
    if (!node || !node->domain().empty() || node->inputs.size() != 2) return false;
    Product next = product;
    next.factors.erase(next.factors.begin() + static_cast<std::ptrdiff_t>(product.whole));
    if (node->is("Mul")) return search(with(with(std::move(next), *node->inputs[0]), *node->inputs[1]), test);
    const auto divisor = node->is("Div") ? facts_.uniform(*node->inputs[1]) : std::nullopt;
    if (!divisor || *divisor == 0) return false;
    next.coefficient /= *divisor;
    return search(with(std::move(next), *node->inputs[0]), test);
  }

  /// True if some order of VALUES fits the matchers, which are tried in theirs: later ones may ask for what earlier ones
  /// captured.
  bool fits(const std::vector<Value*>& values) {
    std::vector<size_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    MatchTrial& trial = *MatchTrial::current();
    do {
      const size_t mark = trial.mark();
      size_t i = 0;
      while (i < order.size() && matchers_[i](*values[order[i]], facts_)) ++i;
      if (i == order.size()) return true;
      trial.roll_back(mark);
    } while (std::ranges::next_permutation(order).found);
    return false;
  }

  const std::vector<Matcher>& matchers_;
  Facts& facts_;
  int ways_ = 0;
};

Matcher product_whose_numbers(std::vector<Matcher> factors, double* coefficient, std::function<bool(double)> pass) {
  return [=](Value& value, Facts& facts) {
    double found = 1;
    const auto test = [&](double number) {
      found = number;
      return pass(number);
    };
    // An alternative of its own: a trial notes what the factors capture.
    const Matcher whole =
        either({[&](Value& product, Facts& known) { return ProductMatch(factors, known).match(product, test); }});
    if (!whole(value, facts)) return false;
    MatchTrial::capture(coefficient, found);
    return true;
  };
}

}  // namespace

Matcher product_of(const std::vector<Matcher>& factors, double* coefficient) {
  return product_whose_numbers(factors, coefficient, [](double) { return true; });
}

Matcher product_near(double wanted, const std::vector<Matcher>& factors) {
  constexpr double kRounding = 1e-3;
  return product_whose_numbers(factors, nullptr,
                               [wanted](double number) { return std::abs(number - wanted) <= kRounding * std::abs(wanted); });
}

}  // namespace attn_opt
