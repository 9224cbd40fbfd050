#include "patterns/around/norm_form.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <map>
#include <optional>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/matcher.h"
#include "patterns/products/squared_distance.h"

namespace attn_opt {
namespace {

constexpr int kMaxDepth = 16;
constexpr size_t kMaxTerms = 12;
/// Nodes above an anchor among which a mean is looked for.
constexpr size_t kMaxSearched = 24;

constexpr std::array kRead = {"Add", "Sub", "Mul", "Div", "Neg", "Max", "Pow", "Sqrt", "Reciprocal", "ReduceMean", "ReduceSum"};

/// Powers of x, E[x], E[x^2] and the inverse root, and vectors of the last axis.
struct Product {
  int x = 0, mean = 0, square = 0, inverse = 0;
  std::vector<Value*> vectors = {};

  auto operator<=>(const Product&) const = default;
};

/// Coefficients of products.
using Sum = std::map<Product, double>;

/// COEFFICIENT, or the whole number that a float32 reciprocal kept it from being.
double snapped(double coefficient) {
  const double whole = std::round(coefficient);
  return whole != 0 && std::abs(coefficient - whole) < 1e-6 * std::abs(whole) ? whole : coefficient;
}

std::optional<Sum> added(Sum one, const Sum& other, double factor) {
  for (const auto& [product, coefficient] : other)
    if ((one[product] += factor * coefficient) == 0) one.erase(product);
  return one.size() > kMaxTerms ? std::nullopt : std::optional(std::move(one));
}

std::optional<Sum> multiplied(const Sum& one, const Sum& other) {
  Sum result;
  for (const auto& [a, by_a] : one)
    for (const auto& [b, by_b] : other) {
      Product both{a.x + b.x, a.mean + b.mean, a.square + b.square, a.inverse + b.inverse, a.vectors};
      both.vectors.insert(both.vectors.end(), b.vectors.begin(), b.vectors.end());
      std::ranges::sort(both.vectors);
      double& coefficient = result[std::move(both)];
      coefficient = snapped(coefficient + by_a * by_b);
    }
  std::erase_if(result, [](const auto& term) { return term.second == 0; });
  return result.size() > kMaxTerms ? std::nullopt : std::optional(std::move(result));
}

/// The mean over the last axis: E[x] and E[x^2] of x and x^2; what has one value for a row stays.
std::optional<Sum> mean_of(const Sum& sum) {
  Sum result;
  for (const auto& [product, coefficient] : sum) {
    if (product.x > 2 || !product.vectors.empty()) return std::nullopt;
    Product row = product;
    row.x = 0;
    row.mean += product.x == 1;
    row.square += product.x == 2;
    if ((result[row] += coefficient) == 0) result.erase(row);
  }
  return result;
}

class NormReader {
 public:
  NormReader(Value& x, Facts& facts) : x_(x), facts_(facts), rank_(facts.shape(x).known().size()) {}

  std::optional<NormForm> form_of(Value& value) {
    const auto sum = read(value);
    return sum && epsilon_ ? form_of(*sum) : std::nullopt;
  }

 private:
  std::optional<Sum> read(Value& value) {
    Value& seen = canonical(value, facts_);
    if (&seen == &x_) return Sum{{{.x = 1}, 1}};
    if (const auto number = facts_.uniform(seen)) return *number == 0 ? Sum() : Sum{{{}, *number}};
    const MaybeShape shape = facts_.shape(seen);
    if (!shape || shape->size() > rank_) return std::nullopt;
    if (shape->size() == 1 && rank_ > 1) return Sum{{{.vectors = {&seen}}, 1}};
    if (!seen.producer || seen.output != 0 || !seen.producer->domain().empty() || depth_ == kMaxDepth) return std::nullopt;
    const auto [known, is_new] = known_.try_emplace(&seen);
    if (!is_new) return known->second;
    ++depth_;
    auto found = computed(*seen.producer);
    --depth_;
    return known_[&seen] = std::move(found);
  }

  std::optional<Sum> operand(const Node& node, int number) {
    return node.input(number) ? read(*node.inputs[static_cast<size_t>(number)]) : std::nullopt;
  }

  std::optional<Sum> computed(const Node& node) {
    if (node.is("Sqrt")) return power_of(operand(node, 0), 0.5);
    if (node.is("Reciprocal")) return power_of(operand(node, 0), -1);
    if (node.is("ReduceMean") || node.is("ReduceSum")) return reduced(node);
    if (node.is("Neg")) return scaled(operand(node, 0), -1);
    if (node.inputs.size() != 2) return std::nullopt;
    const auto one = operand(node, 0), other = one ? operand(node, 1) : std::nullopt;
    if (!other) return std::nullopt;
    if (node.is("Add") || node.is("Sub")) {
      auto sum = added(*one, *other, node.is("Sub") ? -1 : 1);
      if (sum && has_variance(*sum) && !has_variance(*one) && !has_variance(*other)) cancels_ = true;
      return sum;
    }
    if (node.is("Mul")) return multiplied(*one, *other);
    if (node.is("Pow")) return other->size() == 1 ? power_of(one, number_of(*other)) : std::nullopt;
    if (node.is("Max")) return other->empty() ? not_negative(*one) : one->empty() ? not_negative(*other) : std::nullopt;
    const auto inverse = node.is("Div") ? power_of(other, -1) : std::nullopt;
    return inverse ? multiplied(*one, *inverse) : std::nullopt;
  }

  std::optional<Sum> reduced(const Node& node) {
    if (!reduced_over_last(node.op(), any())(*node.outputs[0], facts_)) return std::nullopt;
    const auto sum = operand(node, 0);
    auto mean = sum ? mean_of(*sum) : std::nullopt;
    if (mean && has_variance(*mean) && !root_of_square(*node.inputs[0], facts_)) cancels_ = true;
    if (!mean || node.is("ReduceMean")) return mean;
    const Dim size = facts_.shape(*node.inputs[0]).known().back();
    return size.is_constant() ? scaled(std::move(mean), static_cast<double>(size.value())) : std::nullopt;
  }

  static std::optional<Sum> scaled(std::optional<Sum> sum, double factor) {
    return sum ? added({}, *sum, factor) : std::nullopt;
  }

  /// The number that SUM is; NaN if it is none.
  static double number_of(const Sum& sum) { return sum.begin()->first == Product() ? sum.begin()->second : NAN; }

  std::optional<Sum> power_of(const std::optional<Sum>& sum, double exponent) {
    if (!sum || sum->empty()) return std::nullopt;
    if (exponent == 2) return multiplied(*sum, *sum);
    if (exponent == 1) return sum;
    if (std::abs(exponent) == 0.5)
      return root_of(*sum) ? std::optional(Sum{{{.inverse = exponent < 0 ? 1 : -1}, 1}}) : std::nullopt;
    return exponent == -1 ? inverse_of(*sum) : std::nullopt;
  }

  /// Of a number times a power of the inverse root.
  static std::optional<Sum> inverse_of(const Sum& sum) {
    const auto& [product, coefficient] = *sum.begin();
    if (sum.size() != 1 || product.x || product.mean || product.square || !product.vectors.empty()) return std::nullopt;
    return Sum{{{.inverse = -product.inverse}, 1 / coefficient}};
  }

  /// Enters that E[x^2] + eps, or that less E[x]^2, is what a root is taken of; false if SUM is neither, or another one was.
  bool root_of(const Sum& sum) {
    Sum rest = sum;
    const auto number = rest.find(Product());
    const double epsilon = number == rest.end() ? 0 : number->second;
    if (number != rest.end()) rest.erase(number);
    const bool centred = rest.size() == 2 && is_variance(rest);
    if (epsilon < 0 || (!centred && !(rest.size() == 1 && coefficient(rest, {.square = 1}) == 1))) return false;
    if (epsilon_ && (*epsilon_ != epsilon || centred_ != centred)) return false;
    epsilon_ = epsilon;
    centred_ = centred;
    return true;
  }

  static double coefficient(const Sum& sum, const Product& product) {
    const auto found = sum.find(product);
    return found == sum.end() ? 0 : found->second;
  }

  static bool is_variance(const Sum& sum) {
    return coefficient(sum, {.square = 1}) == 1 && coefficient(sum, {.mean = 2}) == -1;
  }

  /// Is some number of times a variance in SUM?
  static bool has_variance(const Sum& sum) {
    const double squares = coefficient(sum, {.square = 1});
    return squares != 0 && coefficient(sum, {.mean = 2}) == -squares;
  }

  /// Max(E[x^2] - E[x]^2, 0): only rounding takes a variance below 0.
  static std::optional<Sum> not_negative(const Sum& sum) {
    return sum.size() == 2 && is_variance(sum) ? std::optional(sum) : std::nullopt;
  }

  std::optional<NormForm> form_of(const Sum& sum) const {
    const auto first = std::ranges::find_if(sum, [](const auto& term) { return term.first.x == 1; });
    if (first == sum.end() || first->first.vectors.size() > 1) return std::nullopt;
    const std::vector<Value*>& weight = first->first.vectors;
    NormForm form{&x_, centred_, *epsilon_, weight.empty() ? nullptr : weight[0], nullptr, cancels_};
    Sum rest = sum;
    if (!take(rest, {.x = 1, .inverse = 1, .vectors = weight}, 1)) return std::nullopt;
    if (centred_ && !take(rest, {.mean = 1, .inverse = 1, .vectors = weight}, -1)) return std::nullopt;
    if (rest.empty()) return form;
    const Product& left = rest.begin()->first;
    const bool is_bias = rest.size() == 1 && rest.begin()->second == 1 && left == Product{.vectors = left.vectors};
    if (!is_bias || left.vectors.size() != 1 || !centred_ || !form.weight) return std::nullopt;
    form.bias = left.vectors[0];
    return form;
  }

  static bool take(Sum& sum, const Product& product, double coefficient) {
    const auto found = sum.find(product);
    if (found == sum.end() || found->second != coefficient) return false;
    sum.erase(found);
    return true;
  }

  Value& x_;
  Facts& facts_;
  size_t rank_;
  int depth_ = 0;
  bool centred_ = false, cancels_ = false;
  std::optional<double> epsilon_;
  std::map<Value*, std::optional<Sum>> known_;
};

/// What the mean of MEASURED may be of: itself, what is squared there, and what a mean is subtracted from, the last first.
void add_sources(Value& measured, std::vector<Value*>& sources, Facts& facts) {
  Value* value = &canonical(measured, facts);
  std::vector<Value*> found{value};
  const Node* node = value->producer;
  if (node && (node->is("Pow") || node->is("Mul")) && node->input(0)) {
    value = &canonical(*node->inputs[0], facts);
    found.push_back(value);
    node = value->producer;
  }
  if (node && node->is("Sub") && node->input(0)) found.push_back(&canonical(*node->inputs[0], facts));
  for (auto source = found.rbegin(); source != found.rend(); ++source)
    if (std::ranges::find(sources, *source) == sources.end()) sources.push_back(*source);
}

/// What VALUE may be a normalisation of.
std::vector<Value*> sources_of(Value& value, Facts& facts) {
  std::vector<Value*> pending{&value}, sources;
  for (size_t i = 0; i < pending.size() && i < kMaxSearched; ++i) {
    const Node* node = canonical(*pending[i], facts).producer;
    if (!node || !std::ranges::any_of(kRead, [&](const char* op) { return node->is(op); })) continue;
    if (node->is("ReduceMean") || node->is("ReduceSum")) add_sources(*node->inputs[0], sources, facts);
    for (Value* input : node->inputs)
      if (input && std::ranges::find(pending, input) == pending.end()) pending.push_back(input);
  }
  return sources;
}

}  // namespace

Matched<NormForm> norm_form(Value& value, Facts& facts) {
  for (Value* source : sources_of(value, facts)) {
    const MaybeShape shape = facts.shape(*source);
    if (!shape || shape->empty() || source == &value) continue;
    NormReader reader(*source, facts);
    const auto form = reader.form_of(value);
    if (!form) continue;
    // A weight or a bias of what is a normalisation by itself is taken in from there.
    const auto& operands = value.producer->inputs;
    const bool goes_on = form->weight && std::ranges::any_of(operands, [&](Value* operand) {
                           return operand && operand != form->weight && operand != form->bias && reader.form_of(*operand);
                         });
    if (!goes_on) return *form;
    return missed(std::string(kNoMatch), value.producer, "'" + value.name + "' is what a normalisation is made to");
  }
  return missed(std::string(kNoMatch), value.producer,
                "'" + value.name + "' is no normalisation of what a mean is taken of above it");
}

}  // namespace attn_opt
