#include "patterns/products/product_letters.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <ranges>

namespace attn_opt {
namespace {

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

}  // namespace

bool has_letter(const std::string& term, char letter) { return term.find(letter) != std::string::npos; }

std::string ProductLetters::contracted(size_t operand) const {
  std::string found;
  std::ranges::copy_if(operands[operand], std::back_inserter(found), [&](char letter) {
    const auto uses = std::ranges::count_if(operands, [&](const std::string& term) { return has_letter(term, letter); });
    return uses > 1 && !has_letter(result, letter);
  });
  return found;
}

std::optional<ProductLetters> product_letters(const Node& product, Facts& facts) {
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
