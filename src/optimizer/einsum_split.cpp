#include "src/optimizer/einsum_split.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

namespace attn_opt {
namespace {

struct Terms {
  std::vector<std::string> operands;
  std::string result;
};

bool has(const std::string& term, char letter) { return term.find(letter) != std::string::npos; }

bool has_letters_once(const std::string& term) {
  return std::set<char>(term.begin(), term.end()).size() == term.size() &&
         std::ranges::all_of(term, [](char letter) { return std::isalpha(static_cast<unsigned char>(letter)) != 0; });
}

/// The terms of EQUATION; nullopt where one repeats a letter or has an ellipsis, or where the result is left out.
std::optional<Terms> terms_of(std::string equation) {
  std::erase(equation, ' ');
  const size_t arrow = equation.find("->");
  if (arrow == std::string::npos) return std::nullopt;
  Terms terms{{""}, equation.substr(arrow + 2)};
  for (const char letter : equation.substr(0, arrow)) {
    if (letter == ',')
      terms.operands.emplace_back();
    else
      terms.operands.back() += letter;
  }
  const bool are_plain = std::ranges::all_of(terms.operands, has_letters_once) && has_letters_once(terms.result);
  return are_plain ? std::optional(std::move(terms)) : std::nullopt;
}

/// The split of TERMS with the operand MAP last; nullopt if that maps no product of the others, or none that it must stand
/// behind.
std::optional<EinsumSplit> split_behind(const Terms& terms, size_t map) {
  const std::string& matrix = terms.operands[map];
  EinsumSplit split{map, "", ""};
  std::string product;
  bool sums = false, is_paired = false, maps = false;
  std::set<char> seen;
  for (size_t i = 0; i < terms.operands.size(); ++i) {
    if (i == map) continue;
    split.product += (split.product.empty() ? "" : ",") + terms.operands[i];
    for (const char letter : terms.operands[i]) {
      const bool is_shared = !seen.insert(letter).second;
      const bool is_made = has(terms.result, letter), is_mapped = has(matrix, letter);
      sums |= is_shared && !is_made && !is_mapped;
      is_paired |= is_shared && is_made && !is_mapped;
      maps |= !is_made && is_mapped;
      if (!is_shared && (is_made || is_mapped)) product += letter;
    }
  }
  if (!sums || !is_paired || !maps) return std::nullopt;
  split.product += "->" + product;
  split.rest = product + "," + matrix + "->" + terms.result;
  return split;
}

}  // namespace

std::optional<EinsumSplit> split_einsum(std::string equation) {
  const auto terms = terms_of(std::move(equation));
  std::optional<EinsumSplit> found;
  for (size_t map = 0; terms && terms->operands.size() > 2 && map < terms->operands.size(); ++map) {
    auto split = split_behind(*terms, map);
    if (split && found) return std::nullopt;
    if (split) found = std::move(split);
  }
  return found;
}

}  // namespace attn_opt
