#include "patterns/products/lettered_product.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "patterns/inner_values.h"
#include "patterns/products/product_equation.h"

namespace attn_opt {
namespace {

/// The letter of the one query where an axis of size 1 stands for it.
constexpr char kOnlyRow = '1';

/// The letters of TERM of which KEPT holds.
template <class Kept>
std::string letters(const std::string& term, Kept kept) {
  std::string found;
  std::copy_if(term.begin(), term.end(), std::back_inserter(found), kept);
  return found;
}

/// The letters of an operand or result by role, outermost first.
struct Letters {
  std::string batch, heads, features;
  char row = 0;

  std::string all() const { return batch + heads + row + features; }
  Role role(char letter) const {
    if (letter == row) return Role::kRow;
    return letter == kUnitAxis || has_letter(batch, letter) ? Role::kBatch
           : has_letter(heads, letter)                      ? Role::kHead
                                                            : Role::kFeature;
  }
};

/// TERM with the letter of ROW in the place of its last axis that it says nothing of, if ROW is no letter; ROW is 0 then where
/// there is none.
std::string with_row(std::string term, char& row) {
  if (row != kUnitAxis) return term;
  const size_t at = term.rfind(kUnitAxis);
  row = at == std::string::npos ? 0 : kOnlyRow;
  if (row) term[at] = row;
  return term;
}

/// VALUE as TERM says its axes; nullopt if a letter has no role or stands twice, or one of a row or feature is not there. Axes
/// that it says nothing of are the row's, if that is one of these, and of the batch.
std::optional<ProductSide> side_of(Value& value, const std::string& whole_term, Letters letters) {
  const std::string term = with_row(whole_term, letters.row), all = kUnitAxis + letters.all();
  ProductSide side{&value, {}};
  for (const char letter : term) {
    const bool is_alone = letter == kUnitAxis || std::ranges::count(term, letter) == 1;
    if (!has_letter(all, letter) || !is_alone) return std::nullopt;
    side.roles.push_back(letters.role(letter));
  }
  for (const char letter : letters.row + letters.features)
    if (letter && !has_letter(term, letter)) return std::nullopt;
  const auto add_axes = [&](char letter) {
    for (size_t axis = 0; axis < term.size(); ++axis)
      if (term[axis] == letter) side.order.push_back(static_cast<int64_t>(axis));
  };
  add_axes(kUnitAxis);
  for (const char letter : letters.all())
    if (letter != kUnitAxis) add_axes(letter);
  if (std::ranges::is_sorted(side.order)) side.order.clear();
  return side;
}

/// OPERAND with an axis of size 1 for each of LEADING letters that only the other has.
std::pair<Value*, std::string> with_leading(Value& operand, const std::string& term, const std::string& leading, Node& product,
                                            MatchContext& context) {
  const std::string missing = letters(leading, [&](char letter) { return letter != kUnitAxis && !has_letter(term, letter); });
  if (missing.empty()) return {&operand, term};
  InnerValues inner(product, context);
  return {inner.raised(&operand, missing.size() + term.size()), missing + term};
}

/// The letter of the queries among those of the scores that V has not: that before the keys', if its size is no number or
/// nobody else's is none. Shared heads are such letters too; where there is none, there is one query.
char query_letter(const std::string& scores, const std::string& values, const Shape& sizes) {
  char found = 0, found_free = 0;
  for (size_t axis = 0; axis < scores.size(); ++axis) {
    if (scores[axis] == kUnitAxis || has_letter(values, scores[axis])) continue;
    const bool is_usual = axis + 2 == scores.size();
    if (!found || is_usual) found = scores[axis];
    if (!sizes[axis].is_constant() && (!found_free || is_usual)) found_free = scores[axis];
  }
  return found_free ? found_free : found ? found : kUnitAxis;
}

/// LEADING letters told apart into batch and heads: the last is the heads', or that which stands beside the features of V, if
/// its size alone is a number, or both or neither are and no heads share values. Letters that V has not are heads that share
/// the values of one, which is the last that is a number above 1, if any is, and stand behind it.
Letters by_role(const std::string& leading, const std::string& values, char feature, const Shape& sizes) {
  const std::string own = letters(leading, [&](char letter) { return has_letter(values, letter); });
  const std::string sharing = letters(leading, [&](char letter) { return !has_letter(values, letter); });
  Letters found;
  if (!own.empty() && (sharing.empty() || own.size() > 1)) {
    const size_t at = values.find(feature);
    const char beside = at > 0 ? values[at - 1] : 0;
    const auto is_number = [&](char letter) { return sizes[values.find(letter)].is_constant(); };
    const auto is_better = [&] { return is_number(beside) == is_number(own.back()) ? sharing.empty() : is_number(beside); };
    found.heads = beside && has_letter(own, beside) && is_better() ? beside : own.back();
    const auto may_be_heads = [&](char letter) { return is_number(letter) && !sizes[values.find(letter)].is(1); };
    const std::string counted = letters(own, may_be_heads);
    if (!sharing.empty() && !is_number(found.heads[0]) && !counted.empty()) found.heads = counted.back();
  }
  found.batch = letters(own, [&](char letter) { return !has_letter(found.heads, letter); });
  found.heads += sharing;
  return found;
}

/// LETTERS of which the last HEAD_AXES leading ones are heads.
Letters with_heads(const Letters& letters, size_t head_axes) {
  const std::string leading = letters.batch + letters.heads;
  const size_t batch = leading.size() - std::min(head_axes, leading.size());
  return {leading.substr(0, batch), leading.substr(batch), {}};
}

/// How the axes of probabilities, which are SCORES, lie: what they say nothing of is the query, if LETTERS have none, and of
/// the batch.
ScoreLayout layout_of(const std::string& scores, Letters letters, char key) {
  const std::string term = with_row(scores, letters.row);
  ScoreLayout layout{{}, letters.heads.size()};
  for (size_t axis = 0; axis < term.size(); ++axis)
    if (term[axis] == kUnitAxis) layout.order.push_back(static_cast<int64_t>(axis));
  for (const char letter : letters.batch + letters.heads) layout.order.push_back(static_cast<int64_t>(term.find(letter)));
  layout.order.push_back(letters.row ? static_cast<int64_t>(term.find(letters.row)) : kNoAxis);
  layout.order.push_back(static_cast<int64_t>(term.find(key)));
  if (layout.rank() == layout.order.size() && std::ranges::is_sorted(layout.order)) layout.order.clear();
  return layout;
}

/// One query and keys that are weights are a linear layer, and a softmax of it a gate.
Matched<void> check_no_gate(Node& product, Value& keys, bool has_queries, Facts& facts) {
  if (has_queries || (!keys.initializer && !facts.constant(keys))) return {};
  return missed(std::string(kNotAttention), &product, "");
}

/// Takes LETTER, that of the only query or the only key, from the operand of EQUATION that has the OTHER of the two: an
/// elementwise product has it in both.
void keep_off(char letter, char other, Equation& equation) {
  std::string& others = has_letter(equation.one, other) ? equation.one : equation.other;
  if (has_letter(equation.one, letter) && has_letter(equation.other, letter)) std::ranges::replace(others, letter, kUnitAxis);
}

/// The letters of RESULT as LAYOUT has its axes; empty if it has others.
std::string placed_letters(const std::string& result, const ScoreLayout& layout) {
  if (layout.order.empty()) return result;
  return layout.rank() == result.size() ? letters_of_axes(layout.order, result) : "";
}

}  // namespace

Matched<ScoreProduct> lettered_score_product(Node& product, const ScoreLayout& layout, MatchContext& context) {
  ATTN_OPT_MATCH(Equation equation, equation_of(product, context));
  const auto miss = [&] { return unread_letters(product, context.facts); };
  const auto factor = factor_of_sum(product, context.facts);
  if (!factor || *factor == 0) return miss();
  const std::string result = placed_letters(equation.result, layout);
  const MaybeShape scores = context.facts.shape(*product.outputs[0]);
  if (result.size() < 2 || !scores) return miss();
  const size_t leading = result.size() - 2, heads = std::min(layout.head_axes, leading);
  const char query = result[leading], key = result[leading + 1];
  const bool has_queries = query != kUnitAxis;
  if (layout.placed(*scores)[leading].is(1)) keep_off(query, key, equation);
  if (layout.placed(*scores)[leading + 1].is(1)) {
    keep_off(key, query, equation);
    InnerValues inner(product, context);
    const bool is_first = has_letter(equation.one, query);
    Value*& queries = is_first ? equation.one_value : equation.other_value;
    queries = without_unit_axes(queries, is_first ? equation.one : equation.other, inner);
  }
  const bool query_first = has_queries ? has_letter(equation.one, query) && !has_letter(equation.other, query)
                                       : has_letter(equation.other, key) && !has_letter(equation.one, key);
  const std::string& query_term = query_first ? equation.one : equation.other;
  std::string key_term = query_first ? equation.other : equation.one;
  Value& query_operand = query_first ? *equation.one_value : *equation.other_value;
  Value* key_operand = query_first ? equation.other_value : equation.one_value;
  if ((key == kUnitAxis ? !has_queries : has_letter(query_term, key)) || has_letter(key_term, query)) return miss();
  ATTN_OPT_DONE(check_no_gate(product, *key_operand, has_queries, context.facts));
  // A sum that keeps the axis of features has that for its only key.
  if (key == kUnitAxis && !has_letter(key_term, kUnitAxis)) {
    key_operand = InnerValues(product, context).unsqueezed(key_operand, {0});
    key_term.insert(0, 1, kUnitAxis);
  }
  Letters letters{result.substr(0, leading - heads), result.substr(leading - heads, heads), equation.contracted(), query};
  const auto is_repeated = [&](char letter) {
    return equation.repeats_one_along(letter, context.facts) || equation.exchanged().repeats_one_along(letter, context.facts);
  };
  if (letters.features.empty() || std::ranges::any_of(letters.features, is_repeated)) return miss();
  const auto [query_value, whole_term] = with_leading(query_operand, query_term, result.substr(0, leading), product, context);
  const auto q = side_of(*query_value, whole_term, letters);
  letters.row = key;
  const auto [key_value, whole_key_term] = with_leading(*key_operand, key_term, letters.batch, product, context);
  const auto k = side_of(*key_value, whole_key_term, letters);
  if (!q || !k) return miss();
  return ScoreProduct{*q, *k, layout.placed(*scores), *factor};
}

Matched<ValueProduct> lettered_value_product(Node& product, Value& probabilities, MatchContext& context,
                                             std::optional<size_t> head_axes) {
  ATTN_OPT_MATCH(const Equation equation, equation_of(product, context, &probabilities));
  const auto miss = [&] { return unread_letters(product, context.facts); };
  const bool comes_first = equation.one_value == &probabilities;
  if (!comes_first && equation.other_value != &probabilities) return miss();
  const std::string& scores = comes_first ? equation.one : equation.other;
  const std::string& values = comes_first ? equation.other : equation.one;
  const std::string keys = equation.contracted();
  const std::string features = letters(values, [&](char letter) { return !has_letter(scores, letter); });
  const char query = query_letter(scores, values, context.facts.shape(probabilities).known());
  const Equation seen = comes_first ? equation : equation.exchanged();
  if (keys.size() != 1 || features.empty() || seen.repeats_one_along(keys[0], context.facts)) return miss();
  const std::string leading =
      letters(scores, [&](char letter) { return letter != query && letter != keys[0] && letter != kUnitAxis; });
  const Shape& sizes = context.facts.shape(comes_first ? *equation.other_value : *equation.one_value).known();
  Letters letters = by_role(leading, values, features[0], sizes);
  if (head_axes) letters = with_heads(letters, *head_axes);
  letters.features = features;
  letters.row = keys[0];
  const auto factor = factor_of_sum(product, context.facts);
  if (!factor || *factor == 0) return miss();
  Value* factored = InnerValues(product, context).scaled(comes_first ? equation.other_value : equation.one_value, *factor);
  const auto value = side_of(*factored, values, letters);
  letters.row = query;
  const auto output = side_of(*product.outputs[0], equation.result, letters);
  const std::string kept = leading + features + (query == kUnitAxis ? "" : std::string(1, query));
  const auto units = std::ranges::count(equation.result, kUnitAxis);
  if (!value || !output || output->roles.size() != kept.size() + static_cast<size_t>(units)) return miss();
  return ValueProduct{*value, *output, layout_of(scores, letters, keys[0]), *factor};
}

}  // namespace attn_opt
