// A product of two operands by letters, whatever number of operands and nodes the model writes it in.
#pragma once

#include <string>

#include "attn_opt/miss.h"
#include "attn_opt/pattern.h"
#include "patterns/products/product_letters.h"

namespace attn_opt {

/// Two operands and the result, by letters. Operands other than probabilities have no axes that they say nothing of.
struct Equation {
  std::string one, other, result;
  Value *one_value = nullptr, *other_value = nullptr;

  /// The letters that both operands have and the result has not, as the first operand has them.
  std::string contracted() const;
  /// True if the axis of the first operand that has LETTER is of size 1, and that of the other is not: the one is repeated.
  bool repeats_one_along(char letter, Facts& facts) const;
  Equation exchanged() const { return {other, one, result, other_value, one_value}; }
};

/// True if WHOLE has all letters of PART.
bool has_all(const std::string& whole, const std::string& part);

/// The equation of LETTERS, as an Einsum writes it.
std::string text_of(const ProductLetters& letters);

/// VALUE without the axes that TERM says nothing of, which TERM is without then.
Value* without_unit_axes(Value* value, std::string& term, InnerValues& inner);

/// PART with axes as WHOLE names them, of size 1 for the LETTERS that it lacks; null if it names one otherwise.
Value* aligned(Value* part, const std::string& letters, const std::string& whole, InnerValues& inner);

/// PRODUCT as one of two operands, of which KEPT, if it is one, stays as it is. Misses: those of unread_letters().
///
///   sum(a * b * f)  =>  sum(a * (b * f)), f having no letters but those of b      sum(a * b * c)  =>  sum(sum(a * b) * c)
Matched<Equation> equation_of(Node& product, MatchContext& context, const Value* kept = nullptr);

/// PRODUCT's letters are not those of an attention. Misses: "product.einsum"; "product.sum" for the sum of an elementwise
/// product; for a MatMul "product.rank", where an operand is a vector, and "scores.transpose", since its axes lie as usual
/// else.
tl::unexpected<Miss> unread_letters(const Node& product, Facts& facts);

/// What EINSUM makes, if it adds nothing up, as a Mul; null if it is another product.
///
///   Einsum("bhij,bhi->bhij", x, t)  =>  x * Unsqueeze(t)
Value* elementwise_product(Node& einsum, MatchContext& context);

}  // namespace attn_opt
