#include "patterns/einsum_product.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "patterns/inner_values.h"

namespace attn_opt {
namespace {

constexpr size_t kMaxRank = 8;

/// Two operands and the result, by letters, and what all is multiplied with.
struct Equation {
  std::string one, other, result;
  Value *one_value = nullptr, *other_value = nullptr;
  Value* factor = nullptr;  ///< a scalar; null if there is none
};

std::string removed(std::string text, const std::string& what) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what)) text.erase(at, what.size());
  return text;
}

/// An ellipsis stands for as many capital letters as the operand has further axes.
std::string without_ellipsis(std::string term, const std::string& letters) {
  const size_t at = term.find("...");
  if (at != std::string::npos) term.replace(at, 3, letters);
  return term;
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

/// The Equation of PRODUCT, whose operands have the terms OPERANDS, without result; nullopt if they are not two and at most a
/// scalar.
std::optional<Equation> with_operands(const std::string& operands, const Node& product, Facts& facts) {
  std::vector<std::string> terms(1);
  for (const char c : operands) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  if (terms.size() != product.inputs.size()) return std::nullopt;
  Equation equation;
  for (size_t i = 0; i < terms.size(); ++i) {
    Value* value = product.inputs[i];
    if (!value || !facts.shape(*value)) return std::nullopt;
    if (terms[i].empty() && !equation.factor && facts.shape(*value).has_rank(0))
      equation.factor = value;
    else if (!equation.one_value)
      std::tie(equation.one, equation.one_value) = std::pair(terms[i], value);
    else if (!equation.other_value)
      std::tie(equation.other, equation.other_value) = std::pair(terms[i], value);
    else
      return std::nullopt;
  }
  return equation.other_value ? std::optional(equation) : std::nullopt;
}

Matched<Equation> equation_of(Node& product, MatchContext& context) {
  const std::string text = removed(product.string_attribute("equation", ""), " ");
  const auto miss = [&] { return missed("product.einsum", &product, text); };
  const size_t arrow = text.find("->");
  const std::string operands = text.substr(0, arrow);
  const auto result = arrow == std::string::npos ? implied_result(operands) : std::optional(text.substr(arrow + 2));
  auto read = with_operands(operands, product, context.facts);
  if (!result || !read) return miss();
  Equation& equation = *read;
  equation.result = *result;
  const Shape& one = context.facts.shape(*equation.one_value).known();
  const Shape& other = context.facts.shape(*equation.other_value).known();
  std::string ellipsis;
  if (equation.one.find("...") != std::string::npos) {
    const size_t named = equation.one.size() - 3;
    for (size_t i = 0; named + i < one.size(); ++i) ellipsis += static_cast<char>('A' + i);
  }
  for (std::string* term : {&equation.one, &equation.other, &equation.result}) *term = without_ellipsis(*term, ellipsis);
  if (equation.one.size() != one.size() || equation.other.size() != other.size() || equation.result.size() < 2 ||
      equation.result.size() > kMaxRank)
    return miss();
  return *std::move(read);
}

/// VALUE times FACTOR, if there is one.
Value* scaled(Value* value, Value* factor, Node& product, MatchContext& context) {
  return factor ? InnerValues(product, context).build().node("Mul", {value, factor}) : value;
}

bool has(const std::string& term, char letter) { return term.find(letter) != std::string::npos; }

/// The letters of TERM of which KEPT holds.
template <class Kept>
std::string letters(const std::string& term, Kept kept) {
  std::string found;
  std::copy_if(term.begin(), term.end(), std::back_inserter(found), kept);
  return found;
}

/// The letters that both operands have and the result has not, as the first operand has them.
std::string contracted(const Equation& equation) {
  return letters(equation.one, [&](char letter) { return has(equation.other, letter) && !has(equation.result, letter); });
}

/// The letters of an operand or result by role, outermost first.
struct Letters {
  std::string batch, heads, features;
  char row = 0;

  std::string all() const { return batch + heads + row + features; }
  Role role(char letter) const {
    if (letter == row) return Role::kRow;
    return has(batch, letter) ? Role::kBatch : has(heads, letter) ? Role::kHead : Role::kFeature;
  }
};

/// VALUE as TERM says its axes; nullopt if a letter has no role or stands twice, or one of a row or feature is not there.
std::optional<ProductSide> side_of(Value& value, const std::string& term, const Letters& letters) {
  const std::string all = letters.all();
  ProductSide side{&value, {}};
  for (const char letter : term) {
    if (!has(all, letter) || std::count(term.begin(), term.end(), letter) != 1) return std::nullopt;
    side.roles.push_back(letters.role(letter));
  }
  for (const char letter : letters.row + letters.features)
    if (!has(term, letter)) return std::nullopt;
  for (const char letter : all)
    if (has(term, letter)) side.order.push_back(static_cast<int64_t>(term.find(letter)));
  if (std::is_sorted(side.order.begin(), side.order.end())) side.order.clear();
  return side;
}

/// QUERY with an axis of size 1 for each leading letter that only the keys have.
std::pair<Value*, std::string> with_leading(Value& query, const std::string& term, const std::string& leading, Node& product,
                                            MatchContext& context) {
  const std::string missing = letters(leading, [&](char letter) { return !has(term, letter); });
  if (missing.empty()) return {&query, term};
  InnerValues inner(product, context);
  return {inner.raised(&query, missing.size() + term.size()), missing + term};
}

/// The letter of the queries among those of the scores that V has not: that before the keys', if its size is no number or
/// nobody else's is none. Shared heads are such letters too; 0 if there is none.
char query_letter(const std::string& scores, const std::string& values, const Shape& sizes) {
  char found = 0, found_free = 0;
  for (size_t axis = 0; axis < scores.size(); ++axis) {
    if (has(values, scores[axis])) continue;
    const bool is_usual = axis + 2 == scores.size();
    if (!found || is_usual) found = scores[axis];
    if (!sizes[axis].is_constant() && (!found_free || is_usual)) found_free = scores[axis];
  }
  return found_free ? found_free : found;
}

/// LEADING letters told apart into batch and heads: the last is the heads', or that which stands beside the features of V.
/// Letters that V has not are heads that share the values of one, and stand behind it.
Letters by_role(const std::string& leading, const std::string& values, char feature) {
  const std::string own = letters(leading, [&](char letter) { return has(values, letter); });
  const std::string sharing = letters(leading, [&](char letter) { return !has(values, letter); });
  Letters found;
  if (!own.empty() && (sharing.empty() || own.size() > 1)) {
    const size_t at = values.find(feature);
    const char beside = at > 0 ? values[at - 1] : 0;
    found.heads = beside && has(own, beside) ? beside : own.back();
  }
  found.batch = letters(own, [&](char letter) { return !has(found.heads, letter); });
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
  const bool query_first = has(equation.one, query) && !has(equation.other, query);
  if (!scores) return miss();
  const std::string& query_term = query_first ? equation.one : equation.other;
  const std::string& key_term = query_first ? equation.other : equation.one;
  if (has(key_term, query) || has(query_term, key)) return miss();
  Letters letters{result.substr(0, leading - heads), result.substr(leading - heads, heads), contracted(equation), query};
  if (letters.features.empty()) return miss();
  Value* scaled_query = scaled(query_first ? equation.one_value : equation.other_value, equation.factor, product, context);
  const auto [query_value, whole_term] = with_leading(*scaled_query, query_term, result.substr(0, leading), product, context);
  const auto q = side_of(*query_value, whole_term, letters);
  letters.row = key;
  const auto k = side_of(query_first ? *equation.other_value : *equation.one_value, key_term, letters);
  if (!q || !k) return miss();
  return ScoreProduct{*q, *k, layout.placed(*scores)};
}

Matched<ValueProduct> einsum_value_product(Node& product, Value& probabilities, MatchContext& context) {
  ATTN_OPT_MATCH(const Equation equation, equation_of(product, context));
  const auto miss = [&] { return missed("product.einsum", &product, product.string_attribute("equation", "")); };
  const bool comes_first = equation.one_value == &probabilities;
  if (!comes_first && equation.other_value != &probabilities) return miss();
  const std::string& scores = comes_first ? equation.one : equation.other;
  const std::string& values = comes_first ? equation.other : equation.one;
  const std::string keys = contracted(equation);
  const Shape& sizes = context.facts.shape(probabilities).known();
  const std::string features = letters(values, [&](char letter) { return !has(scores, letter); });
  const char query = query_letter(scores, values, sizes);
  if (keys.size() != 1 || scores.size() < 2 || !query || features.empty()) return miss();
  const std::string leading = letters(scores, [&](char letter) { return letter != query && letter != keys[0]; });
  Letters letters = by_role(leading, values, features[0]);
  letters.features = features;
  letters.row = keys[0];
  Value* scaled_values = scaled(comes_first ? equation.other_value : equation.one_value, equation.factor, product, context);
  const auto value = side_of(*scaled_values, values, letters);
  letters.row = query;
  const auto output = side_of(*product.outputs[0], equation.result, letters);
  if (!value || !output || output->roles.size() != leading.size() + 1 + features.size()) return miss();
  ValueProduct read{*value, *output, {{}, letters.heads.size()}};
  for (const char letter : letters.batch + letters.heads + query + keys[0])
    read.probabilities.order.push_back(static_cast<int64_t>(scores.find(letter)));
  if (std::is_sorted(read.probabilities.order.begin(), read.probabilities.order.end())) read.probabilities.order.clear();
  return read;
}

Value* elementwise_product(Node& einsum, MatchContext& context) {
  auto equation = equation_of(einsum, context);
  if (!equation || equation->factor) return nullptr;
  if (equation->other == equation->result) {
    std::swap(equation->one, equation->other);
    std::swap(equation->one_value, equation->other_value);
  }
  const std::string &whole = equation->one, &part = equation->other;
  const bool repeats = std::ranges::any_of(whole, [&](char letter) { return std::ranges::count(whole, letter) > 1; });
  if (whole != equation->result || repeats) return nullptr;
  std::vector<int64_t> added;
  std::string kept;
  for (size_t axis = 0; axis < whole.size(); ++axis) {
    if (part.find(whole[axis]) == std::string::npos)
      added.push_back(static_cast<int64_t>(axis));
    else
      kept += whole[axis];
  }
  if (kept != part) return nullptr;
  InnerValues inner(einsum, context);
  Value* factor = added.empty() ? equation->other_value : inner.unsqueezed(equation->other_value, added);
  return inner.build().node("Mul", {equation->one_value, factor});
}

}  // namespace attn_opt
