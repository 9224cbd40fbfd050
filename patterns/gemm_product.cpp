// Gemm as a product of attention.
//
//   before   Gemm(Q, K, bias; alpha, beta, transB = 1) ─ … ─ Softmax ─ Gemm(·, V)      one head, no batch
//   after    Attention(Q, K, V, beta * bias; scale = alpha), with axes of size 1 added
#include "patterns/gemm_product.h"

#include <utility>

namespace attn_opt {
namespace {

bool is_transposed(const Node& gemm, int operand) { return gemm.int_attribute(operand == 0 ? "transA" : "transB", 0) != 0; }

/// Roles of OPERAND's axes where those of what is multiplied are ROWS and COLUMNS.
ProductSide side(const Node& gemm, int operand, Role rows, Role columns) {
  if (is_transposed(gemm, operand)) std::swap(rows, columns);
  return {gemm.inputs[operand], {rows, columns}};
}

/// What is added, or null where that is nothing.
Value* addend_of(const Node& gemm, MatchContext& context) {
  Value* addend = gemm.input(2);
  const bool adds = addend && gemm.float_attribute("beta", 1) != 0 && context.facts.uniform(*addend) != 0.0;
  return adds ? addend : nullptr;
}

/// A Gemm with a constant is a linear layer, and a softmax between two of them a classifier with a table behind it.
Matched<void> check_weights(Node& gemm, int operand, MatchContext& context) {
  if (!gemm.inputs[operand]->initializer && !context.facts.constant(*gemm.inputs[operand])) return {};
  return missed("product.gemm", &gemm, "'" + gemm.inputs[operand]->name + "' is constant: a linear layer");
}

/// Both operands of a Gemm have two axes, whatever is known of them.
Matched<void> check_ranks(Node& gemm, MatchContext& context) {
  for (const size_t operand : {0, 1})
    if (!context.facts.shape(*gemm.inputs[operand]).has_rank(2))
      return missed("product.unknown-rank", &gemm, "'" + gemm.inputs[operand]->name + "' is not known to have 2 axes");
  return {};
}

}  // namespace

Matched<ScoreProduct> gemm_score_product(Node& product, bool transposed, MatchContext& context) {
  const int query = transposed ? 1 : 0;
  ATTN_OPT_DONE(check_weights(product, 1 - query, context));
  ATTN_OPT_DONE(check_ranks(product, context));
  const MaybeShape scores = context.facts.shape(*product.outputs[0]);
  if (!scores.has_rank(2)) return missed("product.unknown-rank", &product, "the scores' sizes are not known");
  ScoreProduct read;
  const ProductSide rows = side(product, 0, Role::kRow, Role::kFeature);
  const ProductSide columns = side(product, 1, Role::kFeature, Role::kRow);
  read.query = transposed ? columns : rows;
  read.key = transposed ? rows : columns;
  read.scores = *scores;
  if (transposed) std::swap(read.scores[0], read.scores[1]);
  read.scale = product.float_attribute("alpha", 1);
  if (read.scale == 0) return missed("product.gemm", &product, "alpha is 0");
  read.addend = addend_of(product, context);
  read.addend_scale = product.float_attribute("beta", 1);
  if (read.addend && transposed) return missed("product.gemm", &product, "a bias of transposed scores");
  return read;
}

Matched<ValueProduct> gemm_value_product(Node& product, size_t probabilities, MatchContext& context) {
  const bool behind = probabilities == 1;
  const int value = behind ? 0 : 1;
  ATTN_OPT_DONE(check_weights(product, value, context));
  ATTN_OPT_DONE(check_ranks(product, context));
  if (product.float_attribute("alpha", 1) != 1) return missed("product.gemm", &product, "alpha is not 1");
  if (addend_of(product, context)) return missed("product.gemm", &product, "a bias is added to the result");
  const Role rows = behind ? Role::kFeature : Role::kRow, columns = behind ? Role::kRow : Role::kFeature;
  ValueProduct read;
  read.value = side(product, value, rows, columns);
  read.output = {product.outputs[0], {rows, columns}};
  if (behind != is_transposed(product, 1 - value)) read.probabilities = ScoreLayout::keys_by_queries(2);
  return read;
}

}  // namespace attn_opt
