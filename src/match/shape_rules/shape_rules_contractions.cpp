// MatMul, Gemm, Einsum.
#include <cctype>
#include <map>

#include "src/io/einsum_equation.h"
#include "src/match/sizes/product_shape.h"

namespace attn_opt {
namespace {

void mat_mul(RuleContext& context) { set_product_shape(context, 0, 1); }

void mat_mul_integer(RuleContext& context) {
  context.set_type(0, onnx::TensorProto::INT32);
  mat_mul(context);
}

void gemm(RuleContext& context) {
  const MaybeShape left = context.shape(0);
  const MaybeShape right = context.shape(1);
  if ((left && left->size() != 2) || (right && right->size() != 2)) return;
  Shape result = context.fresh_shape(0, 2);
  if (left) result[0] = (*left)[context.node().int_attribute("transA", 0) != 0 ? 1 : 0];
  if (right) result[1] = (*right)[context.node().int_attribute("transB", 0) != 0 ? 0 : 1];
  context.set_shape(0, std::move(result));
}

void einsum(RuleContext& context) {
  EinsumEquation equation = einsum_equation(context.node().string_attribute("equation", ""));
  std::vector<std::string>& terms = equation.operands;
  std::map<char, Dim> sizes;
  std::map<char, int> counts;
  std::string ellipsis;
  if (terms.size() != context.node().inputs.size()) return;
  for (size_t i = 0; i < terms.size(); ++i) {
    const MaybeShape shape = context.shape(i);
    if (!shape) return;
    const std::string axes = ellipsis_axes(terms[i], shape->size());
    replace_ellipsis(terms[i], axes);
    if (axes.size() > ellipsis.size()) ellipsis = axes;
    if (shape->size() != terms[i].size()) return;
    for (size_t axis = 0; axis < shape->size(); ++axis) {
      const char letter = terms[i][axis];
      const auto [found, added] = sizes.emplace(letter, (*shape)[axis]);
      if (!added) found->second = context.broadcast(found->second, (*shape)[axis]);
      ++counts[letter];
    }
  }
  std::string letters = equation.result.value_or("...");
  replace_ellipsis(letters, ellipsis);
  if (!equation.result) {
    for (const auto& [letter, count] : counts)
      if (std::isalpha(static_cast<unsigned char>(letter)) != 0 && count == 1) letters += letter;
  }
  Shape result;
  for (const char letter : letters) {
    const auto found = sizes.find(letter);
    if (found == sizes.end()) return;
    result.push_back(found->second);
  }
  context.set_shape(0, std::move(result));
}

constexpr ShapeRule kContractionRules[] = {
    {"Einsum", einsum},
    {"Gemm", gemm},
    {"MatMul", mat_mul},
    {"MatMulInteger", mat_mul_integer, ResultType::kSetByRule},
};

}  // namespace

void set_product_shape(RuleContext& context, size_t left_input, size_t right_input) {
  const MaybeShape left = context.shape(left_input);
  const MaybeShape right = context.shape(right_input);
  if (!left || !right || left->empty() || right->empty()) return;
  const bool row = left->size() == 1, column = right->size() == 1;
  const Shape left_batch(left->begin(), left->end() - (row ? 1 : 2));
  const Shape right_batch(right->begin(), right->end() - (column ? 1 : 2));
  context.require_equal(left->back(), (*right)[right->size() - (column ? 1 : 2)]);
  Shape result = context.broadcast(left_batch, right_batch);
  if (!row) result.push_back((*left)[left->size() - 2]);
  if (!column) result.push_back(right->back());
  context.set_shape(0, std::move(result));
}

std::span<const ShapeRule> contraction_rules() { return kContractionRules; }

}  // namespace attn_opt
