#include "patterns/einsum_product.h"

#include <algorithm>
#include <string>

#include "patterns/inner_values.h"

namespace attn_opt {
namespace {

constexpr size_t kMaxRank = 8;

struct Equation {
  std::string one, other, result;
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

Matched<Equation> equation_of(Node& product, MatchContext& context) {
  const std::string text = removed(product.string_attribute("equation", ""), " ");
  const auto miss = [&] { return missed("product.einsum", &product, text); };
  const size_t comma = text.find(','), arrow = text.find("->");
  if (product.inputs.size() != 2 || comma == std::string::npos || arrow == std::string::npos || arrow < comma) return miss();
  Equation equation{text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1), text.substr(arrow + 2)};
  const MaybeShape shapes[2] = {context.facts.shape(*product.inputs[0]), context.facts.shape(*product.inputs[1])};
  if (!shapes[0] || !shapes[1]) return miss();
  std::string ellipsis;
  if (equation.one.find("...") != std::string::npos) {
    const size_t named = equation.one.size() - 3;
    for (size_t i = 0; named + i < shapes[0]->size(); ++i) ellipsis += static_cast<char>('A' + i);
  }
  for (std::string* term : {&equation.one, &equation.other, &equation.result}) *term = without_ellipsis(*term, ellipsis);
  if (equation.one.size() != shapes[0]->size() || equation.other.size() != shapes[1]->size() || equation.result.size() < 2 ||
      equation.result.size() > kMaxRank)
    return miss();
  return equation;
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
  const auto [query_value, whole_term] =
      with_leading(*product.inputs[query_first ? 0 : 1], query_term, result.substr(0, leading), product, context);
  const auto q = side_of(*query_value, whole_term, letters);
  letters.row = key;
  const auto k = side_of(*product.inputs[query_first ? 1 : 0], key_term, letters);
  if (!q || !k) return miss();
  return ScoreProduct{*q, *k, layout.placed(*scores)};
}

Matched<ValueProduct> einsum_value_product(Node& product, size_t probabilities, MatchContext& context) {
  ATTN_OPT_MATCH(const Equation equation, equation_of(product, context));
  const auto miss = [&] { return missed("product.einsum", &product, product.string_attribute("equation", "")); };
  const std::string& scores = probabilities == 0 ? equation.one : equation.other;
  const std::string& values = probabilities == 0 ? equation.other : equation.one;
  const std::string keys = contracted(equation);
  const Shape& sizes = context.facts.shape(*product.inputs[probabilities]).known();
  const std::string features = letters(values, [&](char letter) { return !has(scores, letter); });
  const char query = query_letter(scores, values, sizes);
  if (keys.size() != 1 || scores.size() < 2 || !query || features.empty()) return miss();
  const std::string leading = letters(scores, [&](char letter) { return letter != query && letter != keys[0]; });
  Letters letters = by_role(leading, values, features[0]);
  letters.features = features;
  letters.row = keys[0];
  const auto value = side_of(*product.inputs[1 - probabilities], values, letters);
  letters.row = query;
  const auto output = side_of(*product.outputs[0], equation.result, letters);
  if (!value || !output || output->roles.size() != leading.size() + 1 + features.size()) return miss();
  ValueProduct read{*value, *output, {{}, letters.heads.size()}};
  for (const char letter : letters.batch + letters.heads + query + keys[0])
    read.probabilities.order.push_back(static_cast<int64_t>(scores.find(letter)));
  if (std::is_sorted(read.probabilities.order.begin(), read.probabilities.order.end())) read.probabilities.order.clear();
  return read;
}

}  // namespace attn_opt
