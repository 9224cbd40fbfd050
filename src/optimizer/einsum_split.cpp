#include "src/optimizer/einsum_split.h"

#include <algorithm>
#include <set>
#include <utility>

#include "src/io/einsum_equation.h"

namespace attn_opt {
namespace {

bool has(const std::string& term, char letter) { return term.find(letter) != std::string::npos; }

/// True if no term of EQUATION repeats a letter or has an ellipsis, and the result is not left out.
bool is_plain(const EinsumEquation& equation) {
  return equation.result && has_letters_once(*equation.result) && std::ranges::all_of(equation.operands, has_letters_once);
}

/// The split of EQUATION, plain, with the operand MAP last; nullopt if that maps no product of the others, or none that it must
/// stand behind.
std::optional<EinsumSplit> split_behind(const EinsumEquation& equation, size_t map) {
  const std::string& matrix = equation.operands[map];
  EinsumSplit split{map, "", ""};
  std::string product;
  bool sums = false, is_paired = false, adds_up = false;
  std::set<char> seen;
  for (size_t i = 0; i < equation.operands.size(); ++i) {
    if (i == map) continue;
    split.product += (split.product.empty() ? "" : ",") + equation.operands[i];
    for (const char letter : equation.operands[i]) {
      const bool is_shared = !seen.insert(letter).second;
      const bool is_made = has(*equation.result, letter), is_mapped = has(matrix, letter);
      sums |= is_shared && !is_made && !is_mapped;
      is_paired |= is_shared && is_made && !is_mapped;
      adds_up |= is_shared && !is_made && is_mapped;
      if (!is_shared && (is_made || is_mapped)) product += letter;
    }
  }
  if (!sums || !is_paired || !adds_up) return std::nullopt;
  split.product += "->" + product;
  split.rest = product + "," + matrix + "->" + *equation.result;
  return split;
}

}  // namespace

std::optional<EinsumSplit> split_einsum(std::string text) {
  const EinsumEquation equation = einsum_equation(std::move(text));
  std::optional<EinsumSplit> found;
  if (equation.operands.size() < 3 || !is_plain(equation)) return found;
  for (size_t map = 0; map < equation.operands.size(); ++map) {
    auto split = split_behind(equation, map);
    if (split && found) return std::nullopt;
    if (split) found = std::move(split);
  }
  return found;
}

}  // namespace attn_opt
