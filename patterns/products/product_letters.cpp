#include "patterns/products/product_letters.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <ranges>

#include "attn_opt/canonical.h"
#include "patterns/inner_values.h"
#include "patterns/layout_checks.h"
#include "src/io/einsum_equation.h"
#include "src/match/shape_rules/reduced_axis.h"

namespace attn_opt {
namespace {

constexpr size_t kMaxFactorRank = 16;

/// LETTERS of as many further axes as TERM, an operand of RANK axes, has an ellipsis for.
std::string of_ellipsis(const std::string& term, size_t rank) {
  std::string letters;
  if (term.find("...") == std::string::npos) return letters;
  for (size_t axis = term.size() - 3; axis < rank; ++axis) letters += static_cast<char>('A' + letters.size());
  return letters;
}

/// The result of OPERANDS where the equation has no arrow: the letters that stand once, in the order of the alphabet. nullopt
/// if that depends on whether capital letters come first, in which runtimes differ.
std::optional<std::string> implied_result(const std::vector<std::string>& operands) {
  std::string all, once;
  for (const std::string& term : operands) all += term;
  std::ranges::copy_if(all, std::back_inserter(once),
                       [&](char letter) { return std::isalpha(letter) && std::ranges::count(all, letter) == 1; });
  std::ranges::sort(once);
  const auto is_capital = [](char letter) { return std::isupper(letter) != 0; };
  if (std::ranges::any_of(once, is_capital) && !std::ranges::all_of(once, is_capital)) return std::nullopt;
  return (all.find("...") == std::string::npos ? "" : "...") + once;
}

std::optional<ProductLetters> letters_of_equation(std::string text, const std::vector<size_t>& ranks) {
  EinsumEquation equation = einsum_equation(std::move(text));
  const auto result = equation.result ? std::move(equation.result) : implied_result(equation.operands);
  if (!result) return std::nullopt;
  ProductLetters letters{std::move(equation.operands), *result};
  if (letters.operands.size() != ranks.size()) return std::nullopt;
  std::string ellipsis;
  for (size_t i = 0; i < ranks.size() && ellipsis.empty(); ++i) ellipsis = of_ellipsis(letters.operands[i], ranks[i]);
  for (std::string& term : letters.operands) replace_ellipsis(term, ellipsis);
  replace_ellipsis(letters.result, ellipsis);
  for (size_t i = 0; i < ranks.size(); ++i)
    if (letters.operands[i].size() != ranks[i]) return std::nullopt;
  return letters;
}

/// Leading axes, as MatMul pairs them, in front of LAST; a vector has the one axis that is summed over.
std::string letters_of_operand(size_t rank, size_t most, const std::string& last) {
  if (rank == 1) return "j";
  std::string leading;
  for (size_t axis = most - rank; axis + 2 < most; ++axis) leading += static_cast<char>('A' + axis);
  return leading + last;
}

ProductLetters letters_of_matmul(size_t one, size_t other) {
  const size_t most = std::max<size_t>({one, other, 2});
  const std::string rows = one > 1 ? "i" : "", columns = other > 1 ? "k" : "";
  return {{letters_of_operand(one, most, "ij"), letters_of_operand(other, most, "jk")},
          letters_of_operand(most, most, rows + columns)};
}

/// Moves letters of a MatMul's operand, TERM, to where the FusedMatMul PRODUCT takes those of its operand I from.
void move_to_fused(const Node& product, size_t i, std::string& term) {
  if (is_transposed(product, i)) std::swap(term[term.size() - 2], term.back());
  if (has_batch_behind(product, i)) std::rotate(term.begin(), term.end() - 2, term.end() - 1);
}

/// The letters of GEMM, which adds nothing.
ProductLetters letters_of_gemm(const Node& gemm) {
  const auto term = [&](const char* transposed, const char* plain, const char* turned) {
    return std::string(gemm.int_attribute(transposed, 0) != 0 ? turned : plain);
  };
  return {{term("transA", "ij", "ji"), term("transB", "jk", "kj")}, "ik"};
}

/// The size of the axis BEFORE_LAST the last of SHAPE, 1 where it has none.
Dim size_within(const Shape& shape, size_t before_last) {
  return before_last < shape.size() ? from_last(shape, before_last) : Dim(1);
}

/// Letters of operands of SHAPES, the FACTORS, of which a sum of their elementwise product is left without the axes SUMMED, or
/// with the size 1 there if it KEEPS them. nullopt where sizes are neither known nor assumed to be equal.
std::optional<ProductLetters> letters_of_sum(const std::vector<Shape>& shapes, const std::vector<size_t>& summed, size_t rank,
                                             bool keeps, const Node& factors, const Facts& facts) {
  ProductLetters letters{std::vector<std::string>(shapes.size()), ""};
  if (rank > kMaxFactorRank) return std::nullopt;
  for (size_t axis = 0; axis < rank; ++axis) {
    Dim size = 1;
    for (const Shape& shape : shapes) {
      const Dim own = size_within(shape, rank - 1 - axis);
      if (!size.is(1) && !own.is(1) && !is_taken_for(own, size, facts, &factors)) return std::nullopt;
      if (size.is(1)) size = own;
    }
    const char letter = static_cast<char>('a' + axis);
    for (size_t i = 0; i < shapes.size(); ++i)
      if (shapes[i].size() + axis >= rank)
        letters.operands[i] += size.is(1) || !size_within(shapes[i], rank - 1 - axis).is(1) ? letter : kUnitAxis;
    const bool is_summed = std::ranges::find(summed, axis) != summed.end();
    if (!is_summed || keeps) letters.result += is_summed ? kUnitAxis : letter;
  }
  return letters;
}

std::optional<ProductLetters> letters_of_factors(const Node& factors, const Node& sum, Facts& facts) {
  const MaybeShape whole = facts.shape(*factors.outputs[0]);
  std::vector<Shape> shapes;
  for (const Value* operand : operands_of(sum, facts)) {
    const MaybeShape shape = facts.shape(*operand);
    if (!shape) return std::nullopt;
    shapes.push_back(*shape);
  }
  if (whole && sum.is("MatMul"))
    return letters_of_sum(shapes, {whole->size() - 1}, whole->size(), facts.shape(*sum.inputs[1]).known().size() > 1, factors,
                          facts);
  const auto summed = whole ? reduced_axes(sum, whole->size(), facts) : std::nullopt;
  return summed ? letters_of_sum(shapes, *summed, whole->size(), sum.int_attribute("keepdims", 1) != 0, factors, facts)
                : std::nullopt;
}

/// What VALUE was cast up from, as exporters add up halves in float; itself if it was not.
Value& before_widening(Value& value, Facts& facts) {
  Value& seen = canonical(value, facts);
  const Node* cast = seen.producer;
  if (!cast || !cast->is("Cast") || !cast->input(0)) return seen;
  const DataType from = facts.type(*cast->inputs[0]), to = facts.type(seen);
  const bool is_wider = is_floating(from) && is_floating(to) && element_size(from) < element_size(to);
  return is_wider ? canonical(*cast->inputs[0], facts) : seen;
}

/// True if no operand of NODE, a Mul, has the shape of what it makes: each is repeated. Where one has it, it may be a mask, and
/// what is summed a row of exponentials.
bool multiplies_repeated(const Node& node, Facts& facts) {
  const MaybeShape whole = facts.shape(*node.outputs[0]);
  return whole && std::ranges::none_of(node.inputs, [&](const Value* input) {
           const MaybeShape own = facts.shape(*input);
           return !own || *own == *whole;
         });
}

/// The number that NODE, the product of a column of nothing else and of what pairs_multiplied() finds, multiplies the sums of
/// rows with; nullopt if it is anything else.
std::optional<double> number_of_column(const Node& node, Facts& facts) {
  const Node* factors = pairs_multiplied(node, facts);
  if (!factors) return std::nullopt;
  const Shape& column = facts.shape(*node.inputs[1]).known();
  const size_t at = column.size() > 1 ? column.size() - 2 : 0;
  for (size_t axis = 0; axis < column.size(); ++axis)
    if (axis != at && !column[axis].is(1)) return std::nullopt;
  return column.size() > facts.shape(*node.inputs[0]).known().size() ? std::nullopt : facts.uniform(*node.inputs[1]);
}

/// Enters in OPERANDS what FACTORS, a Mul, multiplies: of an operand that is the product of two, neither of which has its
/// shape, these.
void enter_operands(const Node& factors, std::vector<Value*>& operands, Facts& facts) {
  for (Value* operand : factors.inputs) {
    const Node* inner = canonical(*operand, facts).producer;
    if (inner && inner->is("Mul") && inner->graph == factors.graph && multiplies_repeated(*inner, facts))
      operands.insert(operands.end(), inner->inputs.begin(), inner->inputs.end());
    else
      operands.push_back(operand);
  }
}

}  // namespace

bool is_fused_matmul(const Node& node) { return node.domain() == "com.microsoft" && node.op() == "FusedMatMul"; }

bool is_transposed(const Node& product, size_t operand) {
  return product.int_attribute(operand == 0 ? "transA" : "transB", 0) != 0;
}

bool has_batch_behind(const Node& product, size_t operand) {
  return product.int_attribute(operand == 0 ? "transBatchA" : "transBatchB", 0) != 0;
}

bool has_letter(const std::string& term, char letter) { return term.find(letter) != std::string::npos; }

std::string letters_of_axes(const std::vector<int64_t>& axes, const std::string& term, char absent) {
  std::string letters;
  for (const int64_t axis : axes) letters += axis == kNoAxis ? absent : term[static_cast<size_t>(axis)];
  return letters;
}

std::string ProductLetters::contracted(size_t operand) const {
  std::string found;
  std::ranges::copy_if(operands[operand], std::back_inserter(found), [&](char letter) {
    const auto uses = std::ranges::count_if(operands, [&](const std::string& term) { return has_letter(term, letter); });
    return uses > 1 && letter != kUnitAxis && !has_letter(result, letter);
  });
  return found;
}

bool ProductLetters::pairs_rows() const {
  const auto has_all_of = [](const std::string& term, const std::string& other) {
    return std::ranges::all_of(other, [&](char letter) { return letter == kUnitAxis || has_letter(term, letter); });
  };
  return std::ranges::all_of(operands, [&](const std::string& term) {
    return std::ranges::all_of(operands, [&](const std::string& other) { return has_all_of(term, other); });
  });
}

const Node* pairs_multiplied(const Node& node, Facts& facts) {
  if (!node.is("MatMul") || !node.input(0) || !node.input(1)) return nullptr;
  const MaybeShape column = facts.shape(*node.inputs[1]);  // asked first: few products have one
  if (!column || column->empty() || (column->size() > 1 && !column->back().is(1))) return nullptr;
  const Node* factors = canonical(*node.inputs[0], facts).producer;
  const auto is_weight = [](const Value* input) { return !input || input->initializer; };
  if (!factors || !factors->is("Mul") || std::ranges::any_of(factors->inputs, is_weight)) return nullptr;
  return multiplies_repeated(*factors, facts) ? factors : nullptr;
}

Node* factors_added_up(const Node& node, Facts& facts) {
  const bool adds_up = node.is("ReduceSum") || node.is("ReduceMean") || number_of_column(node, facts);
  Node* factors = adds_up && node.input(0) ? before_widening(*node.inputs[0], facts).producer : nullptr;
  const bool multiplies =
      factors && factors->is("Mul") && factors->graph == node.graph && factors->input(0) && factors->input(1);
  return multiplies && &canonical(*factors->inputs[0], facts) != &canonical(*factors->inputs[1], facts) ? factors : nullptr;
}

Value* addend_of(const Node& product, Facts& facts) {
  Value* addend = product.is("Gemm") ? product.input(2) : nullptr;
  const bool adds = addend && product.float_attribute("beta", 1) != 0 && facts.uniform(*addend) != 0.0;
  return adds ? addend : nullptr;
}

std::optional<double> factor_of_sum(const Node& product, Facts& facts) {
  if (product.is("Gemm") || is_fused_matmul(product)) return product.float_attribute("alpha", 1);
  if (product.is("MatMul") && factors_added_up(product, facts)) return number_of_column(product, facts);
  if (!product.is("ReduceMean")) return 1;
  const MaybeShape whole = facts.shape(*product.inputs[0]);
  const auto axes = whole ? reduced_axes(product, whole->size(), facts) : std::nullopt;
  if (!axes) return std::nullopt;
  double factor = 1;
  for (const size_t axis : *axes) {
    if (!(*whole)[axis].is_constant() || (*whole)[axis].is(0)) return std::nullopt;
    factor /= static_cast<double>((*whole)[axis].value());
  }
  return factor;
}

std::vector<Value*> operands_of(const Node& product, Facts& facts) {
  std::vector<Value*> operands;
  if (const Node* factors = factors_added_up(product, facts))
    enter_operands(*factors, operands, facts);
  else
    operands.assign(product.inputs.begin(), product.inputs.end());
  if (product.is("Gemm")) operands.resize(2);  // what it adds is no factor
  return operands;
}

Value* product_with(const Node& product, const Value& operand, Value* other, InnerValues& inner, Facts& facts) {
  const Node* factors = factors_added_up(product, facts);
  const size_t at = operands_of(product, facts)[0] == &operand ? 0 : 1;
  if (!factors) return inner.again(product, at, other);
  Value* multiplied = inner.again(*factors, at, other);
  const DataType added_up = facts.type(*product.inputs[0]);
  if (added_up != facts.type(*factors->outputs[0]))
    multiplied = inner.build().node("Cast", {multiplied}, {GraphBuilder::attribute("to", int64_t{added_up})});
  return inner.again(product, 0, multiplied);
}

std::optional<ProductLetters> product_letters(const Node& product, Facts& facts) {
  if (const Node* factors = factors_added_up(product, facts)) return letters_of_factors(*factors, product, facts);
  std::vector<size_t> ranks;
  for (const Value* operand : operands_of(product, facts)) {
    const MaybeShape shape = operand ? facts.shape(*operand) : nullptr;
    if (!shape) return std::nullopt;
    ranks.push_back(shape->size());
  }
  if (product.is("Einsum")) return letters_of_equation(product.string_attribute("equation", ""), ranks);
  if (product.is("Gemm")) {
    const bool multiplies_matrices = ranks[0] == 2 && ranks[1] == 2 && !addend_of(product, facts);
    return multiplies_matrices ? std::optional(letters_of_gemm(product)) : std::nullopt;
  }
  const bool is_fused = is_fused_matmul(product);
  const size_t least = is_fused ? 2 : 1;
  if (!(product.is("MatMul") || is_fused) || ranks.size() != 2 || std::ranges::min(ranks) < least) return std::nullopt;
  ProductLetters letters = letters_of_matmul(ranks[0], ranks[1]);
  for (size_t i = 0; is_fused && i < ranks.size(); ++i) move_to_fused(product, i, letters.operands[i]);
  return letters;
}

}  // namespace attn_opt
