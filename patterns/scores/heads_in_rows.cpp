#include "patterns/scores/heads_in_rows.h"

#include <span>
#include <vector>

#include "patterns/inner_values.h"
#include "patterns/layout_checks.h"
#include "patterns/products/product_letters.h"
#include "patterns/scores/score_layout.h"

namespace attn_opt {
namespace {

/// How many heads' rows stand in one row of WHOLE's that APART has on leading axes; nullopt if that is no number.
std::optional<int64_t> heads_taken_out(const Shape& whole, const Shape& apart) {
  if (whole.size() < 2 || apart.size() < 2 || whole.back() != apart.back()) return std::nullopt;
  const Dim &rows = from_last(whole, 1), &own = from_last(apart, 1);
  const auto heads = exact_quotient(rows, own);
  if (!heads || !heads->is_constant() || heads->value() < 2) return std::nullopt;
  const Dim before = product(std::span(whole).first(whole.size() - 2)),
            after = product(std::span(apart).first(apart.size() - 2));
  return after == before * *heads ? std::optional(heads->value()) : std::nullopt;
}

/// PRODUCT as a MatMul; null if it is neither that nor a FusedMatMul that leaves batch axes where they are.
const Node* as_matmul(const Node& product, InnerValues& inner, Facts& facts) {
  if (product.is("MatMul")) return &product;
  if (!is_fused_matmul(product)) return nullptr;
  std::vector<Value*> operands;
  for (const size_t i : {0, 1}) {
    Value* operand = product.inputs[i];
    const MaybeShape shape = facts.shape(*operand);
    if (!shape || shape->size() < 2 || has_batch_behind(product, i)) return nullptr;
    operands.push_back(is_transposed(product, i) ? inner.swapped(operand, shape->size()) : operand);
  }
  operands[0] = inner.scaled(operands[0], factor_of_sum(product, facts).value_or(1));
  return inner.build().node("MatMul", operands)->producer;
}

}  // namespace

bool holds_heads_in_rows(const Shape& whole, const Shape& apart) { return heads_taken_out(whole, apart).has_value(); }

Value* turned_product(Node& transpose, MatchContext& context) {
  const Value* swapped = swapped_from(transpose, context.facts);
  InnerValues inner(transpose, context);
  const Node* product = swapped && swapped->producer ? as_matmul(*swapped->producer, inner, context.facts) : nullptr;
  if (!product) return nullptr;
  std::vector<Value*> operands;
  for (const size_t at : {1, 0}) {
    const MaybeShape shape = context.facts.shape(*product->inputs[at]);
    if (!shape || shape->size() < 2) return nullptr;
    operands.push_back(inner.transposed(product->inputs[at], ScoreLayout::keys_by_queries(shape->size()).order));
  }
  return inner.build().node("MatMul", operands);
}

Value* product_with_heads_apart(Node& product, const ScoreSplit& split, MatchContext& context) {
  const auto heads = split.keeps_keys() ? heads_taken_out(split.parts, split.merged) : std::nullopt;
  InnerValues inner(product, context);
  const Node* matmul = heads ? as_matmul(product, inner, context.facts) : nullptr;
  if (!matmul) return nullptr;
  const MaybeShape rows = context.facts.shape(*matmul->inputs[0]), columns = context.facts.shape(*matmul->inputs[1]);
  if (!rows || !columns || rows->size() != columns->size() || rows->size() != split.parts.size()) return nullptr;
  const Dim &queries = from_last(split.merged, 1), &features = rows->back();
  if (!queries.is_constant() && !features.is_constant()) return nullptr;
  const size_t leading = rows->size() - 2;
  std::vector<int64_t> apart(leading, 0);
  apart.push_back(*heads);
  apart.push_back(queries.is_constant() ? queries.value() : -1);
  apart.push_back(features.is_constant() ? features.value() : -1);
  Value* shared = inner.unsqueezed(matmul->inputs[1], {static_cast<int64_t>(leading)});
  return inner.build().node("MatMul", {inner.reshaped(matmul->inputs[0], apart), shared});
}

}  // namespace attn_opt
