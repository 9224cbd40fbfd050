// The equation of an Einsum, taken apart as it is written.
#pragma once

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace attn_opt {

struct EinsumEquation {
  std::vector<std::string> operands;  ///< letters and ellipses of each; what is no equation gives other signs, too
  std::optional<std::string> result;  ///< nullopt: left out, and implied
};

/// TEXT, blanks apart: what stands between the commas, and what behind the arrow.
inline EinsumEquation einsum_equation(std::string text) {
  std::erase(text, ' ');
  EinsumEquation equation{{""}, std::nullopt};
  if (const size_t arrow = text.find("->"); arrow != std::string::npos) {
    equation.result = text.substr(arrow + 2);
    text.resize(arrow);
  }
  for (const char sign : text) {
    if (sign == ',')
      equation.operands.emplace_back();
    else
      equation.operands.back() += sign;
  }
  return equation;
}

/// LETTERS in the place of TERM's ellipsis, if it has one.
inline void replace_ellipsis(std::string& term, const std::string& letters) {
  constexpr std::string_view kEllipsis = "...";
  const size_t at = term.find(kEllipsis);
  if (at != std::string::npos) term.replace(at, kEllipsis.size(), letters);
}

/// Signs that are no letters for the axes of an ellipsis that broadcast with those of others, the last of which is '\1': as
/// many as TERM has, of an operand of RANK axes.
inline std::string ellipsis_axes(const std::string& term, size_t rank) {
  constexpr size_t kEllipsis = 3;
  std::string axes;
  if (term.find("...") == std::string::npos) return axes;
  for (size_t back = rank + kEllipsis; back > term.size(); --back) axes += static_cast<char>(back - term.size());
  return axes;
}

/// True if TERM is of letters alone, none twice.
inline bool has_letters_once(const std::string& term) {
  return std::set<char>(term.begin(), term.end()).size() == term.size() &&
         std::ranges::all_of(term, [](char sign) { return std::isalpha(static_cast<unsigned char>(sign)) != 0; });
}

}  // namespace attn_opt
