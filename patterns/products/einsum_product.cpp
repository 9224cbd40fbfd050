#include "patterns/products/einsum_product.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "patterns/inner_values.h"
#include "patterns/products/product_letters.h"

namespace attn_opt {
namespace {

constexpr size_t kMaxRank = 8;

/// Two operands and the result, by letters.
struct Equation {
  std::string one, other, result;
  Value *one_value = nullptr, *other_value = nullptr;
};

/// True if WHOLE has all letters of PART.
bool has_all(const std::string& whole, const std::string& part) {
  return std::ranges::all_of(part, [&](char letter) { return has_letter(whole, letter); });
}

/// PART with axes as WHOLE names them, of size 1 for the letters that it lacks; null if it names one otherwise.
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

/// PRODUCT as one of two operands, of which KEPT, if it is one, stays as it is: what has no letters but those of one of them is
/// a factor of that one.
///
///   sum(a * b * f)  =>  sum(a * (b * f))
Matched<Equation> equation_of(Node& product, MatchContext& context, const Value* kept = nullptr) {
  const auto miss = [&] { return missed("product.einsum", &product, product.string_attribute("equation", "")); };
  const auto letters = product_letters(product, context.facts);
  if (!letters || letters->result.size() < 2 || letters->result.size() > kMaxRank) return miss();
  std::vector<size_t> main = product.inputs.size() == 2 ? std::vector<size_t>{0, 1} : main_operands(*letters);
  if (main.size() != 2) return miss();
  Equation equation{letters->operands[main[0]], letters->operands[main[1]], letters->result, product.inputs[main[0]],
                    product.inputs[main[1]]};
  for (size_t i = 0; i < product.inputs.size(); ++i) {
    if (i == main[0] || i == main[1]) continue;
    InnerValues inner(product, context);
    const bool is_of_one = equation.one_value != kept && has_all(equation.one, letters->operands[i]);
    const std::string& whole = is_of_one ? equation.one : equation.other;
    Value*& value = is_of_one ? equation.one_value : equation.other_value;
    Value* factor = value == kept ? nullptr : aligned(product.inputs[i], letters->operands[i], whole, inner);
    if (!factor) return miss();
    value = inner.build().node("Mul", {value, factor});
  }
  return equation;
}

/// The letters of TERM of which KEPT holds.
template <class Kept>
std::string letters(const std::string& term, Kept kept) {
  std::string found;
  std::copy_if(term.begin(), term.end(), std::back_inserter(found), kept);
  return found;
}

/// The letters that both operands have and the result has not, as the first operand has them.
std::string contracted(const Equation& equation) {
  return letters(equation.one,
                 [&](char letter) { return has_letter(equation.other, letter) && !has_letter(equation.result, letter); });
}

/// The letters of an operand or result by role, outermost first.
struct Letters {
  std::string batch, heads, features;
  char row = 0;

  std::string all() const { return batch + heads + row + features; }
  Role role(char letter) const {
    if (letter == row) return Role::kRow;
    return has_letter(batch, letter) ? Role::kBatch : has_letter(heads, letter) ? Role::kHead : Role::kFeature;
  }
};

/// VALUE as TERM says its axes; nullopt if a letter has no role or stands twice, or one of a row or feature is not there.
std::optional<ProductSide> side_of(Value& value, const std::string& term, const Letters& letters) {
  const std::string all = letters.all();
  ProductSide side{&value, {}};
  for (const char letter : term) {
    if (!has_letter(all, letter) || std::count(term.begin(), term.end(), letter) != 1) return std::nullopt;
    side.roles.push_back(letters.role(letter));
  }
  for (const char letter : letters.row + letters.features)
    if (!has_letter(term, letter)) return std::nullopt;
  for (const char letter : all)
    if (has_letter(term, letter)) side.order.push_back(static_cast<int64_t>(term.find(letter)));
  if (std::ranges::is_sorted(side.order)) side.order.clear();
  return side;
}

/// QUERY with an axis of size 1 for each leading letter that only the keys have.
std::pair<Value*, std::string> with_leading(Value& query, const std::string& term, const std::string& leading, Node& product,
                                            MatchContext& context) {
  const std::string missing = letters(leading, [&](char letter) { return !has_letter(term, letter); });
  if (missing.empty()) return {&query, term};
  InnerValues inner(product, context);
  return {inner.raised(&query, missing.size() + term.size()), missing + term};
}

/// The letter of the queries among those of the scores that V has not: that before the keys', if its size is no number or
/// nobody else's is none. Shared heads are such letters too; 0 if there is none.
char query_letter(const std::string& scores, const std::string& values, const Shape& sizes) {
  char found = 0, found_free = 0;
  for (size_t axis = 0; axis < scores.size(); ++axis) {
    if (has_letter(values, scores[axis])) continue;
    const bool is_usual = axis + 2 == scores.size();
    if (!found || is_usual) found = scores[axis];
    if (!sizes[axis].is_constant() && (!found_free || is_usual)) found_free = scores[axis];
  }
  return found_free ? found_free : found;
}

/// LEADING letters told apart into batch and heads: the last is the heads', or that which stands beside the features of V.
/// Letters that V has not are heads that share the values of one, and stand behind it.
Letters by_role(const std::string& leading, const std::string& values, char feature) {
  const std::string own = letters(leading, [&](char letter) { return has_letter(values, letter); });
  const std::string sharing = letters(leading, [&](char letter) { return !has_letter(values, letter); });
  Letters found;
  if (!own.empty() && (sharing.empty() || own.size() > 1)) {
    const size_t at = values.find(feature);
    const char beside = at > 0 ? values[at - 1] : 0;
    found.heads = beside && has_letter(own, beside) ? beside : own.back();
  }
  found.batch = letters(own, [&](char letter) { return !has_letter(found.heads, letter); });
  found.heads += sharing;
  return found;
}

}  // namespace

Matched<ScoreProduct> einsum_score_product(Node& product, const ScoreLayout& layout, MatchContext& context) {
  ATTN_OPT_MATCH(const Equation equation, equation_of(product, context));
  const auto miss = [&] { return missed("product.einsum", &product, product.string_attribute("equation", "")); };
  std::string result = equation.result;
  if (!layout.order.empty() && layout.order.size() != result.size()) return miss();
  for (size_t i = 0; i < layout.order.size(); ++i) result[i] = equation.result[static_cast<size_t>(layout.order[i])];
  const size_t leading = result.size() - 2, heads = std::min(layout.head_axes, leading);
  const char query = result[leading], key = result[leading + 1];
  const MaybeShape scores = context.facts.shape(*product.outputs[0]);
  const bool query_first = has_letter(equation.one, query) && !has_letter(equation.other, query);
  if (!scores) return miss();
  const std::string& query_term = query_first ? equation.one : equation.other;
  const std::string& key_term = query_first ? equation.other : equation.one;
  if (has_letter(key_term, query) || has_letter(query_term, key)) return miss();
  Letters letters{result.substr(0, leading - heads), result.substr(leading - heads, heads), contracted(equation), query};
  if (letters.features.empty()) return miss();
  Value& query_operand = query_first ? *equation.one_value : *equation.other_value;
  const auto [query_value, whole_term] = with_leading(query_operand, query_term, result.substr(0, leading), product, context);
  const auto q = side_of(*query_value, whole_term, letters);
  letters.row = key;
  const auto k = side_of(query_first ? *equation.other_value : *equation.one_value, key_term, letters);
  if (!q || !k) return miss();
  return ScoreProduct{*q, *k, layout.placed(*scores)};
}

Matched<ValueProduct> einsum_value_product(Node& product, Value& probabilities, MatchContext& context) {
  ATTN_OPT_MATCH(const Equation equation, equation_of(product, context, &probabilities));
  const auto miss = [&] { return missed("product.einsum", &product, product.string_attribute("equation", "")); };
  const bool comes_first = equation.one_value == &probabilities;
  if (!comes_first && equation.other_value != &probabilities) return miss();
  const std::string& scores = comes_first ? equation.one : equation.other;
  const std::string& values = comes_first ? equation.other : equation.one;
  const std::string keys = contracted(equation);
  const Shape& sizes = context.facts.shape(probabilities).known();
  const std::string features = letters(values, [&](char letter) { return !has_letter(scores, letter); });
  const char query = query_letter(scores, values, sizes);
  if (keys.size() != 1 || scores.size() < 2 || !query || features.empty()) return miss();
  const std::string leading = letters(scores, [&](char letter) { return letter != query && letter != keys[0]; });
  Letters letters = by_role(leading, values, features[0]);
  letters.features = features;
  letters.row = keys[0];
  const auto value = side_of(comes_first ? *equation.other_value : *equation.one_value, values, letters);
  letters.row = query;
  const auto output = side_of(*product.outputs[0], equation.result, letters);
  if (!value || !output || output->roles.size() != leading.size() + 1 + features.size()) return miss();
  ValueProduct read{*value, *output, {{}, letters.heads.size()}};
  for (const char letter : letters.batch + letters.heads + query + keys[0])
    read.probabilities.order.push_back(static_cast<int64_t>(scores.find(letter)));
  if (std::ranges::is_sorted(read.probabilities.order)) read.probabilities.order.clear();
  return read;
}

Value* elementwise_product(Node& einsum, MatchContext& context) {
  const auto letters = product_letters(einsum, context.facts);
  if (!letters || letters->operands.size() != 2) return nullptr;
  const size_t at = letters->operands[0] == letters->result ? 0 : 1;
  const std::string &whole = letters->operands[at], &part = letters->operands[1 - at];
  if (whole != letters->result) return nullptr;
  InnerValues inner(einsum, context);
  Value* factor = aligned(einsum.inputs[1 - at], part, whole, inner);
  return factor ? inner.build().node("Mul", {einsum.inputs[at], factor}) : nullptr;
}

}  // namespace attn_opt
