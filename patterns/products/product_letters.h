// Products by letters, as an Einsum writes them: one letter for each axis of an operand or the result.
//
//   MatMul of (B, H, L, S) and (S, D)  =>  "ABij,jk->ABik"      Einsum("...ij,jk->...ik")  =>  "ABij,jk->ABik"
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

struct ProductLetters {
  std::vector<std::string> operands;
  std::string result;

  /// The letters of OPERAND that another operand has too and the result has not.
  std::string contracted(size_t operand) const;
};

/// True if TERM has LETTER.
bool has_letter(const std::string& term, char letter);

/// The letters of PRODUCT, a MatMul or Einsum; nullopt where ranks are not known or others than the equation says, or where
/// runtimes differ about the result.
std::optional<ProductLetters> product_letters(const Node& product, Facts& facts);

}  // namespace attn_opt
