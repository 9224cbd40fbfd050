#include "patterns/products/product_letters.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <ranges>

#include "attn_opt/canonical.h"
#include "patterns/inner_values.h"
#include "src/match/shape_rules/reduced_axis.h"

namespace attn_opt {
namespace {

constexpr size_t kMaxFactorRank = 16;

/// LETTERS of as many further axes as TERM, an operand of RANK axes, has an ellipsis for.
std::string of_ellipsis(const std::string& term, size_t rank) {
  std::string letters;
  if (term.find("...") == std::string::npos) return letters;
  for (size_t axis = term.size() - 3; axis < rank; ++axis) letters += static_cast<char>('A' + letters.size());
  return letters;
}

void replace_ellipsis(std::string& term, const std::string& letters) {
  const size_t at = term.find("...");
  if (at != std::string::npos) term.replace(at, 3, letters);
}

/// The result of OPERANDS, terms with commas between them, where the equation has no arrow: the letters that stand once, in the
/// order of the alphabet. nullopt if that depends on whether capital letters come first, in which runtimes differ.
std::optional<std::string> implied_result(const std::string& operands) {
  std::string once;
  std::ranges::copy_if(operands, std::back_inserter(once),
                       [&](char letter) { return std::isalpha(letter) && std::ranges::count(operands, letter) == 1; });
  std::ranges::sort(once);
  const auto is_capital = [](char letter) { return std::isupper(letter) != 0; };
  if (std::ranges::any_of(once, is_capital) && !std::ranges::all_of(once, is_capital)) return std::nullopt;
  return (operands.find("...") == std::string::npos ? "" : "...") + once;
}

std::optional<ProductLetters> letters_of_equation(std::string text, const std::vector<size_t>& ranks) {
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  const std::string operands = text.substr(0, arrow);
  const auto result = arrow == std::string::npos ? implied_result(operands) : std::optional(text.substr(arrow + 2));
  if (!result) return std::nullopt;
  ProductLetters letters{{""}, *result};
  for (const char c : operands) {
    if (c == ',')
      letters.operands.emplace_back();
    else
      letters.operands.back() += c;
  }
  if (letters.operands.size() != ranks.size()) return std::nullopt;
  std::string ellipsis;
  for (size_t i = 0; i < ranks.size() && ellipsis.empty(); ++i) ellipsis = of_ellipsis(letters.operands[i], ranks[i]);
  for (std::string& term : letters.operands) replace_ellipsis(term, ellipsis);
  replace_ellipsis(letters.result, ellipsis);
  for (size_t i = 0; i < ranks.size(); ++i)
    if (letters.operands[i].size() != ranks[i]) return std::nullopt;
  return letters;
}

/// Leading axes, as MatMul pairs them, in front of LAST; a vector has the one axis that is summed over.
std::string letters_of_operand(size_t rank, size_t most, const std::string& last) {
  if (rank == 1) return "j";
  std::string leading;
  for (size_t axis = most - rank; axis + 2 < most; ++axis) leading += static_cast<char>('A' + axis);
  return leading + last;
}

ProductLetters letters_of_matmul(size_t one, size_t other) {
  const size_t most = std::max<size_t>({one, other, 2});
  const std::string rows = one > 1 ? "i" : "", columns = other > 1 ? "k" : "";
  return {{letters_of_operand(one, most, "ij"), letters_of_operand(other, most, "jk")},
          letters_of_operand(most, most, rows + columns)};
}

/// Letters of operands of shapes ONE and OTHER, of which a sum of their elementwise product is left without the axes SUMMED, or
/// with the size 1 there if it KEEPS them. nullopt where sizes are not known to be equal.
std::optional<ProductLetters> letters_of_sum(const Shape& one, const Shape& other, const std::vector<size_t>& summed,
                                             bool keeps) {
  const size_t rank = std::max(one.size(), other.size());
  ProductLetters letters{{"", ""}, ""};
  if (rank > kMaxFactorRank) return std::nullopt;
  for (size_t axis = 0; axis < rank; ++axis) {
    const auto size_in = [&](const Shape& shape) {
      return shape.size() + axis < rank ? Dim(1) : from_last(shape, rank - 1 - axis);
    };
    const Dim first = size_in(one), second = size_in(other);
    if (first != second && !first.is(1) && !second.is(1)) return std::nullopt;
    const char letter = static_cast<char>('a' + axis);
    if (one.size() + axis >= rank) letters.operands[0] += first == second || !first.is(1) ? letter : kUnitAxis;
    if (other.size() + axis >= rank) letters.operands[1] += first == second || !second.is(1) ? letter : kUnitAxis;
    const bool is_summed = std::ranges::find(summed, axis) != summed.end();
    if (!is_summed || keeps) letters.result += is_summed ? kUnitAxis : letter;
  }
  return letters;
}

std::optional<ProductLetters> letters_of_factors(const Node& factors, const Node& sum, Facts& facts) {
  const MaybeShape one = facts.shape(*factors.inputs[0]), other = facts.shape(*factors.inputs[1]);
  if (!one || !other) return std::nullopt;
  const auto summed = reduced_axes(sum, std::max(one->size(), other->size()), facts);
  return summed ? letters_of_sum(*one, *other, *summed, sum.int_attribute("keepdims", 1) != 0) : std::nullopt;
}

}  // namespace

bool has_letter(const std::string& term, char letter) { return term.find(letter) != std::string::npos; }

std::string ProductLetters::contracted(size_t operand) const {
  std::string found;
  std::ranges::copy_if(operands[operand], std::back_inserter(found), [&](char letter) {
    const auto uses = std::ranges::count_if(operands, [&](const std::string& term) { return has_letter(term, letter); });
    return uses > 1 && letter != kUnitAxis && !has_letter(result, letter);
  });
  return found;
}

bool ProductLetters::pairs_rows() const {
  const auto has_all_of = [](const std::string& term, const std::string& other) {
    return std::ranges::all_of(other, [&](char letter) { return letter == kUnitAxis || has_letter(term, letter); });
  };
  return std::ranges::all_of(operands, [&](const std::string& term) {
    return std::ranges::all_of(operands, [&](const std::string& other) { return has_all_of(term, other); });
  });
}

Node* factors_added_up(const Node& node, Facts& facts) {
  Node* factors = node.is("ReduceSum") && node.input(0) ? canonical(*node.inputs[0], facts).producer : nullptr;
  const bool multiplies =
      factors && factors->is("Mul") && factors->graph == node.graph && factors->input(0) && factors->input(1);
  return multiplies ? factors : nullptr;
}

std::vector<Value*> operands_of(const Node& product, Facts& facts) {
  const Node* factors = factors_added_up(product, facts);
  const auto& inputs = factors ? factors->inputs : product.inputs;
  return {inputs.begin(), inputs.end()};
}

Value* product_with(const Node& product, const Value& operand, Value* other, InnerValues& inner, Facts& facts) {
  const Node* factors = factors_added_up(product, facts);
  const size_t at = operands_of(product, facts)[0] == &operand ? 0 : 1;
  return factors ? inner.again(product, 0, inner.again(*factors, at, other)) : inner.again(product, at, other);
}

std::optional<ProductLetters> product_letters(const Node& product, Facts& facts) {
  if (const Node* factors = factors_added_up(product, facts)) return letters_of_factors(*factors, product, facts);
  std::vector<size_t> ranks;
  for (const Value* operand : product.inputs) {
    const MaybeShape shape = operand ? facts.shape(*operand) : nullptr;
    if (!shape) return std::nullopt;
    ranks.push_back(shape->size());
  }
  if (product.is("Einsum")) return letters_of_equation(product.string_attribute("equation", ""), ranks);
  const bool is_matmul = product.is("MatMul") && ranks.size() == 2 && ranks[0] > 0 && ranks[1] > 0;
  return is_matmul ? std::optional(letters_of_matmul(ranks[0], ranks[1])) : std::nullopt;
}

}  // namespace attn_opt
