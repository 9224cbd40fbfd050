#include "patterns/products.h"

#include <algorithm>

#include "patterns/einsum_product.h"
#include "patterns/gemm_product.h"

namespace attn_opt {
namespace {

bool is_fused_matmul(const Node& node) { return node.op() == "FusedMatMul" && node.domain() == "com.microsoft"; }

/// Roles of a MatMul operand: leading axes, then LAST_BUT_ONE and LAST.
std::vector<Role> matmul_roles(size_t rank, Role last_but_one, Role last) {
  std::vector<Role> roles(rank, Role::kBatch);
  roles[rank - 1] = last;
  roles[rank - 2] = last_but_one;
  if (rank >= 3) roles[rank - 3] = Role::kHead;
  return roles;
}

/// OPERAND of a MatMul or FusedMatMul, where ROWS and COLUMNS are the axes of what is multiplied.
ProductSide side_of(const Node& product, size_t operand, size_t rank, Role rows, Role columns) {
  const bool is_transposed = product.int_attribute(operand == 0 ? "transA" : "transB", 0) != 0;
  if (is_transposed) std::swap(rows, columns);
  return {product.inputs[operand], matmul_roles(rank, rows, columns)};
}

/// Shapes of both operands of a MatMul, if their ranks allow a product of heads.
Matched<std::pair<Shape, Shape>> operand_shapes(Node& product, MatchContext& context) {
  const Shape* one = context.facts.shape(*product.inputs[0]);
  const Shape* other = context.facts.shape(*product.inputs[1]);
  if (!one || !other) return missed("product.unknown-rank", &product, "an operand's rank is not known");
  if (one->size() < 2 || one->size() != other->size())
    return missed("product.rank", &product, to_string(*one) + " and " + to_string(*other));
  for (const char* flag : {"transBatchA", "transBatchB"})
    if (product.int_attribute(flag, 0) != 0) return missed("product.fused", &product, std::string(flag) + " is set");
  return std::make_pair(*one, *other);
}

}  // namespace

bool is_product(const Node& node) { 
  return node.is("MatMul") || node.is("Einsum") || node.is("Gemm") || is_fused_matmul(node);
}

Matched<ScoreProduct> score_product(Node& product, bool transposed, MatchContext& context) {
  if (product.is("Einsum")) {
    if (transposed) return missed("product.transposed-einsum", &product, product.string_attribute("equation", ""));
    return einsum_score_product(product, context);
  }
  if (product.is("Gemm")) return gemm_score_product(product, transposed, context);
  ATTN_OPT_MATCH(const auto shapes, operand_shapes(product, context));
  const size_t rank = shapes.first.size();
  ScoreProduct read;
  const ProductSide rows = side_of(product, 0, rank, Role::kRow, Role::kFeature);
  const ProductSide columns = side_of(product, 1, rank, Role::kFeature, Role::kRow);
  read.query = transposed ? columns : rows;
  read.key = transposed ? rows : columns;
  const Shape* scores = context.facts.shape(*product.outputs[0]);
  if (!scores) return missed("product.unknown-rank", &product, "the scores' rank is not known");
  read.scores = *scores;
  if (transposed) std::swap(read.scores[rank - 1], read.scores[rank - 2]);
  if (is_fused_matmul(product)) read.scale = product.float_attribute("alpha", 1);
  if (read.scale == 0) return missed("product.fused", &product, "alpha is 0");
  return read;
}

Matched<ValueProduct> value_product(Node& product, Value& probabilities, bool transposed, MatchContext& context) {
  if (product.is("Einsum")) {
    if (transposed) return missed("product.transposed-einsum", &product, product.string_attribute("equation", ""));
    return einsum_value_product(product, probabilities, context);
  }
  if (product.is("Gemm")) return gemm_value_product(product, probabilities, transposed, context);
  ATTN_OPT_MATCH(const auto shapes, operand_shapes(product, context));
  const size_t rank = shapes.first.size();
  const int expected = transposed ? 1 : 0;
  if (product.inputs[expected] != &probabilities || product.inputs[1 - expected] == &probabilities)
    return missed("product.probabilities-on-wrong-side", &product, "the product is not that of probabilities and values");
  if (product.int_attribute(expected == 0 ? "transA" : "transB", 0) != 0)
    return missed("product.fused", &product, "the probabilities are transposed");
  if (is_fused_matmul(product) && product.float_attribute("alpha", 1) != 1)
    return missed("product.fused", &product, "alpha is not 1");
  ValueProduct read;
  const Role rows = transposed ? Role::kFeature : Role::kRow, columns = transposed ? Role::kRow : Role::kFeature;
  read.value = side_of(product, static_cast<size_t>(1 - expected), rank, rows, columns);
  read.output = {product.outputs[0], matmul_roles(rank, rows, columns)};
  return read;
}

AxisMap axes_of(const ProductSide& side, const std::optional<LeadingSplit>& split, MatchContext& context) {
  const Shape& shape = *context.facts.shape(*side.value);
  if (split && shape.size() == 3 && side.roles[0] == Role::kHead)
    return AxisMap::of_merged(shape, split->batch, split->heads, side.roles[1], side.roles[2]);
  return AxisMap::of(shape, side.roles);
}

}  // namespace attn_opt
