// Products by letters, as an Einsum writes them: one letter for each axis of an operand or the result.
//
//   MatMul of (B, H, L, S) and (S, D)  =>  "ABij,jk->ABik"      Einsum("...ij,jk->...ik")  =>  "ABij,jk->ABik"
//   ReduceSum(Mul of (B, S, 1) and (B, S, D), 1)  =>  "ab.,abc->ac"      ReduceMean  =>  the same, over the number of elements
//   MatMul(Mul of (L, 1, D) and (1, S, D), ones of (D, 1))  =>  "a.c,.bc->ab."
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

class InnerValues;

/// In the place of a letter: an axis of size 1 that an operand is repeated along, or that the result has in the place of a sum.
inline constexpr char kUnitAxis = '.';

struct ProductLetters {
  std::vector<std::string> operands;
  std::string result;

  /// The letters of OPERAND that another operand has too and the result has not.
  std::string contracted(size_t operand) const;
  /// True if no operand has a letter that another lacks: rows are paired one by one.
  bool pairs_rows() const;
};

/// True for FusedMatMul of com.microsoft: a MatMul of operands that it transposes first, times a number.
bool is_fused_matmul(const Node& node);
/// True if PRODUCT, a FusedMatMul or Gemm, takes OPERAND with its last two axes exchanged.
bool is_transposed(const Node& product, size_t operand);
/// True if a FusedMatMul takes OPERAND's first axis for the last but one.
bool has_batch_behind(const Node& product, size_t operand);

/// True if TERM has LETTER.
bool has_letter(const std::string& term, char letter);

/// The letters that AXES of what has TERM have; ABSENT for those that are kNoAxis.
std::string letters_of_axes(const std::vector<int64_t>& axes, const std::string& term, char absent = kUnitAxis);

/// The Mul of operands that are each repeated, all pairs of them, that NODE multiplies with a column; null if it is anything
/// else.
const Node* pairs_multiplied(const Node& node, Facts& facts);

/// The Mul of different operands that NODE, a ReduceSum, ReduceMean or product with a column of one number, adds up, or of
/// which it adds up a copy, or one cast to a wider type; null if it is anything else. No more than a guess: what is added up
/// may be a row of scores.
Node* factors_added_up(const Node& node, Facts& facts);

/// What PRODUCT, a Gemm, adds; null where that is nothing, and for other products.
Value* addend_of(const Node& product, Facts& facts);

/// What the sum that PRODUCT says is multiplied with: one over the number of elements, of a mean, and what a Gemm or
/// FusedMatMul multiplies with. Nullopt if that is not known.
std::optional<double> factor_of_sum(const Node& product, Facts& facts);

/// What PRODUCT multiplies: of Muls that make outer products, what these multiply.
std::vector<Value*> operands_of(const Node& product, Facts& facts);

/// PRODUCT with OTHER in the place of OPERAND.
Value* product_with(const Node& product, const Value& operand, Value* other, InnerValues& inner, Facts& facts);

/// The letters of PRODUCT, a MatMul or FusedMatMul, an Einsum, a Gemm that adds nothing or a sum of an elementwise product;
/// nullopt where ranks are not known or others than the equation says, or where runtimes differ about the result.
std::optional<ProductLetters> product_letters(const Node& product, Facts& facts);

}  // namespace attn_opt
