#include "patterns/products/product_equation.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "patterns/inner_values.h"

namespace attn_opt {
namespace {

constexpr size_t kMostAxes = 8;

/// The operands of PRODUCT that no other has all letters of, the first of several alike.
std::vector<size_t> main_operands(const ProductLetters& letters) {
  std::vector<size_t> found;
  for (size_t i = 0; i < letters.operands.size(); ++i) {
    const std::string& own = letters.operands[i];
    bool is_part = false;
    for (size_t other = 0; other < letters.operands.size(); ++other) {
      const bool is_alike = has_all(own, letters.operands[other]);
      is_part |= other != i && has_all(letters.operands[other], own) && (!is_alike || other < i);
    }
    if (!is_part) found.push_back(i);
  }
  return found;
}

/// Takes two of OPERANDS of LETTERS, neither of which is KEPT, for their product where that sums over letters which nothing
/// else has; false if there are none.
///
///   sum(a * b * c)  =>  sum(sum(a * b) * c)
bool join_pair(ProductLetters& letters, std::vector<Value*>& operands, const Value* kept, InnerValues& inner) {
  for (size_t i = 0; i < operands.size(); ++i)
    for (size_t j = i + 1; j < operands.size(); ++j) {
      std::string others = letters.result, joined;
      for (size_t k = 0; k < operands.size(); ++k)
        if (k != i && k != j) others += letters.operands[k];
      const std::string &one = letters.operands[i], &other = letters.operands[j];
      const bool sums = std::ranges::any_of(one, [&](char c) { return has_letter(other, c) && !has_letter(others, c); });
      if (!sums || operands[i] == kept || operands[j] == kept) continue;
      for (const char c : one + other)
        if (has_letter(others, c) && !has_letter(joined, c)) joined += c;
      const std::string equation = one + "," + other + "->" + joined;
      operands[i] = inner.build().node("Einsum", {operands[i], operands[j]}, {GraphBuilder::attribute("equation", equation)});
      operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(j));
      letters.operands[i] = joined;
      letters.operands.erase(letters.operands.begin() + static_cast<std::ptrdiff_t>(j));
      return true;
    }
  return false;
}

/// True if VALUE, which is TERM, has an axis of LETTER that is of size 1.
bool is_single(const Value& value, const std::string& term, char letter, Facts& facts) {
  const size_t axis = term.find(letter);
  return axis != std::string::npos && facts.shape(value).known()[axis].is(1);
}

/// Takes what a MatMul repeats of OPERANDS along leading axes out of their LETTERS.
void leave_out_repeated(ProductLetters& letters, const std::vector<Value*>& operands, Facts& facts) {
  const auto is_one = [&](size_t operand, char letter) {
    return is_single(*operands[operand], letters.operands[operand], letter, facts);
  };
  for (const char letter : letters.result) {
    const bool is_leading = has_letter(letters.operands[0], letter) && has_letter(letters.operands[1], letter);
    if (!is_leading || is_one(0, letter) == is_one(1, letter)) continue;
    std::ranges::replace(letters.operands[is_one(0, letter) ? 0 : 1], letter, kUnitAxis);
  }
}

}  // namespace

bool has_all(const std::string& whole, const std::string& part) {
  return std::ranges::all_of(part, [&](char letter) { return has_letter(whole, letter); });
}

Value* without_unit_axes(Value* value, std::string& term, InnerValues& inner) {
  std::vector<int64_t> axes;
  for (size_t axis = 0; axis < term.size(); ++axis)
    if (term[axis] == kUnitAxis) axes.push_back(static_cast<int64_t>(axis));
  std::erase(term, kUnitAxis);
  return axes.empty() ? value : inner.build().along("Squeeze", *value, axes);
}

Value* aligned(Value* part, const std::string& letters, const std::string& whole, InnerValues& inner) {
  std::vector<int64_t> order, added;
  for (size_t axis = 0; axis < whole.size(); ++axis) {
    if (has_letter(letters, whole[axis]))
      order.push_back(static_cast<int64_t>(letters.find(whole[axis])));
    else
      added.push_back(static_cast<int64_t>(axis));
  }
  const bool repeats = std::ranges::any_of(whole, [&](char letter) { return std::ranges::count(whole, letter) > 1; });
  if (repeats || order.size() != letters.size()) return nullptr;
  Value* value = std::ranges::is_sorted(order) ? part : inner.transposed(part, order);
  return added.empty() || letters.empty() ? value : inner.unsqueezed(value, added);
}

std::string text_of(const ProductLetters& letters) {
  std::string text;
  for (const std::string& term : letters.operands) text += (text.empty() ? "" : ",") + term;
  return text + "->" + letters.result;
}

std::string Equation::contracted() const {
  std::string found;
  std::ranges::copy_if(one, std::back_inserter(found),
                       [this](char letter) { return has_letter(other, letter) && !has_letter(result, letter); });
  return found;
}

bool Equation::repeats_one_along(char letter, Facts& facts) const {
  return is_single(*one_value, one, letter, facts) && !is_single(*other_value, other, letter, facts);
}

tl::unexpected<Miss> unread_letters(const Node& product, Facts& facts) {
  if (product.is("Einsum")) return missed("product.einsum", &product, product.string_attribute("equation", ""));
  const auto letters = product_letters(product, facts);
  const bool has_vector = letters && std::ranges::any_of(letters->operands, [](const auto& term) { return term.size() == 1; });
  const char* id = factors_added_up(product, facts) ? "product.sum" : has_vector ? "product.rank" : "scores.transpose";
  return missed(id, &product, letters ? text_of(*letters) : "sizes that are not known to be equal");
}

Matched<Equation> equation_of(Node& product, MatchContext& context, const Value* kept) {
  auto letters = product_letters(product, context.facts);
  if (!letters || letters->result.empty() || letters->result.size() > kMostAxes) return unread_letters(product, context.facts);
  InnerValues inner(product, context);
  std::vector<Value*> operands = operands_of(product, context.facts);
  if (product.is("MatMul") || is_fused_matmul(product)) leave_out_repeated(*letters, operands, context.facts);
  std::vector<size_t> main = main_operands(*letters);
  while (main.size() > 2 && join_pair(*letters, operands, kept, inner)) main = main_operands(*letters);
  if (operands.size() == 2) main = {0, 1};
  if (main.size() != 2) return unread_letters(product, context.facts);
  Equation equation{letters->operands[main[0]], letters->operands[main[1]], letters->result, operands[main[0]],
                    operands[main[1]]};
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i == main[0] || i == main[1]) continue;
    const bool is_of_one = equation.one_value != kept && has_all(equation.one, letters->operands[i]);
    const std::string& whole = is_of_one ? equation.one : equation.other;
    Value*& value = is_of_one ? equation.one_value : equation.other_value;
    Value* factor = value == kept ? nullptr : aligned(operands[i], letters->operands[i], whole, inner);
    if (!factor) return unread_letters(product, context.facts);
    value = inner.build().node("Mul", {value, factor});
  }
  if (equation.one_value != kept) equation.one_value = without_unit_axes(equation.one_value, equation.one, inner);
  if (equation.other_value != kept) equation.other_value = without_unit_axes(equation.other_value, equation.other, inner);
  return equation;
}

Value* elementwise_product(Node& einsum, MatchContext& context) {
  const auto letters = product_letters(einsum, context.facts);
  if (!letters || letters->operands.size() != 2) return nullptr;
  const std::string &whole = letters->result, &one = letters->operands[0], &other = letters->operands[1];
  if (!has_all(whole, one + other) || !has_all(one + other, whole)) return nullptr;
  InnerValues inner(einsum, context);
  Value* first = aligned(einsum.inputs[0], one, whole, inner);
  Value* second = first ? aligned(einsum.inputs[1], other, whole, inner) : nullptr;
  return second ? inner.build().node("Mul", {first, second}) : nullptr;
}

}  // namespace attn_opt
