#include "patterns/einsum_product.h"

#include <algorithm>
#include <map>
#include <string>

namespace attn_opt {
namespace {

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
  const Shape* shapes[2] = {context.facts.shape(*product.inputs[0]), context.facts.shape(*product.inputs[1])};
  if (!shapes[0] || !shapes[1]) return miss();
  std::string ellipsis;
  if (equation.one.find("...") != std::string::npos) {
    const size_t named = equation.one.size() - 3;
    for (size_t i = 0; named + i < shapes[0]->size(); ++i) ellipsis += static_cast<char>('A' + i);
  }
  for (std::string* term : {&equation.one, &equation.other, &equation.result}) *term = without_ellipsis(*term, ellipsis);
  if (equation.one.size() != shapes[0]->size() || equation.other.size() != shapes[1]->size() || equation.result.size() < 2 ||
      equation.result.size() > 4)
    return miss();
  return equation;
}

/// Letters of leading axes, in the order of the scores: the last is the heads'.
std::map<char, Role> leading_roles(const std::string& leading) {
  std::map<char, Role> roles;
  for (size_t i = 0; i < leading.size(); ++i) roles[leading[i]] = i + 1 == leading.size() ? Role::kHead : Role::kBatch;
  return roles;
}

/// Roles of TERM's axes; nullopt if a letter has none or stands twice.
std::optional<std::vector<Role>> roles_of(const std::string& term, const std::map<char, Role>& roles) {
  std::vector<Role> found;
  for (char letter : term) {
    auto role = roles.find(letter);
    if (role == roles.end() || std::count(term.begin(), term.end(), letter) != 1) return std::nullopt;
    found.push_back(role->second);
  }
  return found;
}

bool has(const std::string& term, char letter) { return term.find(letter) != std::string::npos; }

/// The letter that both operands have and the result has not; 0 if there is not exactly one.
char contracted_letter(const Equation& equation) {
  char found = 0;
  for (char letter : equation.one)
    if (has(equation.other, letter) && !has(equation.result, letter)) {
      if (found) return 0;
      found = letter;
    }
  return found;
}

}  // namespace

Matched<ScoreProduct> einsum_score_product(Node& product, MatchContext& context) {
  ATTN_OPT_MATCH(const Equation equation, equation_of(product, context));
  const auto miss = [&] { return missed("product.einsum", &product, product.string_attribute("equation", "")); };
  const char feature = contracted_letter(equation);
  const char query = equation.result[equation.result.size() - 2], key = equation.result.back();
  const std::string leading = equation.result.substr(0, equation.result.size() - 2);
  const bool straight = has(equation.one, query) && has(equation.other, key) && !has(equation.one, key) && !has(equation.other, query);
  const bool swapped = has(equation.other, query) && has(equation.one, key) && !has(equation.other, key) && !has(equation.one, query);
  const Shape* scores = context.facts.shape(*product.outputs[0]);
  if (!feature || (!straight && !swapped) || !scores) return miss();
  auto roles = leading_roles(leading);
  roles[query] = roles[key] = Role::kRow;
  roles[feature] = Role::kFeature;
  auto one = roles_of(equation.one, roles), other = roles_of(equation.other, roles);
  if (!one || !other) return miss();
  const ProductSide first{product.inputs[0], *one}, second{product.inputs[1], *other};
  return ScoreProduct{straight ? first : second, straight ? second : first, *scores};
}

Matched<ValueProduct> einsum_value_product(Node& product, Value& probabilities, MatchContext& context) {
  ATTN_OPT_MATCH(const Equation equation, equation_of(product, context));
  const auto miss = [&] { return missed("product.einsum", &product, product.string_attribute("equation", "")); };
  const bool first = product.inputs[0] == &probabilities;
  const std::string& scores = first ? equation.one : equation.other;
  const std::string& values = first ? equation.other : equation.one;
  if (scores.size() < 2 || contracted_letter(equation) != scores.back()) return miss();
  const char query = scores[scores.size() - 2], key = scores.back();
  auto roles = leading_roles(scores.substr(0, scores.size() - 2));
  char feature = 0;
  for (char letter : values)
    if (!has(scores, letter)) {
      if (feature) return miss();
      feature = letter;
    }
  if (!feature || has(values, query)) return miss();
  auto value_roles = roles, output_roles = roles;
  value_roles[key] = Role::kRow;
  output_roles[query] = Role::kRow;
  value_roles[feature] = output_roles[feature] = Role::kFeature;
  auto value = roles_of(values, value_roles), output = roles_of(equation.result, output_roles);
  if (!value || !output || output->size() != scores.size()) return miss();
  return ValueProduct{{product.inputs[first ? 1 : 0], *value}, {product.outputs[0], *output}};
}

}  // namespace attn_opt
