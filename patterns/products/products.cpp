// MatMul, FusedMatMul and Gemm as products of attention.
//
//   before   Gemm(Q, K, bias; alpha, beta, transB = 1) ─ … ─ Softmax ─ Gemm(·, V)      one head, no batch
//   after    Attention(Q, K, V, beta * bias; scale = alpha), with axes of size 1 added
#include "patterns/products/products.h"

#include <algorithm>
#include <numeric>

#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/products/lettered_product.h"
#include "patterns/products/product_letters.h"
#include "patterns/softmax/row_reduction.h"
#include "src/match/operator_map.h"

namespace attn_opt {
namespace {

/// A Gemm with a constant is a linear layer, and a softmax between two of them a classifier with a table behind it.
Matched<void> check_no_layer(Node& product, size_t operand, Facts& facts) {
  const Value* value = product.is("Gemm") ? product.inputs[operand] : nullptr;
  if (!value || (!value->initializer && !facts.constant(*value))) return {};
  return missed("product.gemm", &product, "'" + value->name + "' is constant: a linear layer");
}

/// True if NODE is a product of integers, which stand for quantized numbers, or of such with numbers that it quantizes itself.
bool multiplies_integers(const Node& node) {
  return node.is("MatMulInteger") || node.is("QLinearMatMul") ||
         (node.domain() == "com.microsoft" && (node.op() == "MatMulIntegerToFloat" || node.op() == "DynamicQuantizeMatMul"));
}

/// Nodes between quantized numbers and their product.
constexpr int kMostAfterQuantizing = 6;

bool quantizes(const Node& node) { return node.is("QuantizeLinear") || node.is("DynamicQuantizeLinear"); }

/// True if a product reads VALUE, quantized numbers, as they are or dequantized, moved, masked and quantized again, STEPS nodes
/// on.
bool is_multiplied_quantized(const Value& value, int steps) {
  return std::ranges::any_of(value.uses, [&](const Use& use) {
    if (!use.node || use.node->outputs.empty() || !use.node->outputs[0]) return false;
    const Node& reader = *use.node;
    if (is_product(reader) || multiplies_integers(reader)) return true;
    const bool is_copy = reader.is("DequantizeLinear") || reader.is("Cast") || reader.is("Where") || has(reader, Trait::kMoves);
    const bool goes_on = quantizes(reader) || is_copy;
    return goes_on && steps > 0 && is_multiplied_quantized(*reader.outputs[0], steps - 1);
  });
}

/// What PRODUCT, a MatMul, FusedMatMul or Gemm, multiplies its sums with.
Matched<double> factor_of_product(const Node& product, Facts& facts) {
  const double factor = factor_of_sum(product, facts).value_or(0);
  if (factor != 0) return factor;
  return missed(product.is("Gemm") ? "product.gemm" : "product.fused", &product, "alpha is 0");
}

/// True if PRODUCT is read by letters where the scores have LAYOUT.
bool is_lettered(const Node& product, const ScoreLayout& layout, Facts& facts) {
  if (product.is("Einsum") || factors_added_up(product, facts)) return true;
  const auto is_vector = [&facts](const Value* operand) {
    const MaybeShape shape = operand ? facts.shape(*operand) : nullptr;
    return shape && shape->size() == 1;
  };
  const bool lies_as_usual = layout.order.empty() || layout.swaps_last_two();
  if (is_fused_matmul(product)) return !lies_as_usual;
  return product.is("MatMul") && (!lies_as_usual || std::ranges::any_of(product.inputs, is_vector));
}

/// OPERAND of a MatMul, FusedMatMul or Gemm of RANK axes, where ROWS and COLUMNS are the axes of what is multiplied.
ProductSide side_of(Node& product, size_t operand, size_t rank, Role rows, Role columns, MatchContext& context,
                    size_t head_axes = 1) {
  if (is_transposed(product, operand)) std::swap(rows, columns);
  InnerValues inner(product, context);
  ProductSide side{inner.raised(product.inputs[operand], rank), matmul_roles(rank, rows, columns, head_axes)};
  if (!has_batch_behind(product, operand)) return side;
  side.order.resize(rank);
  std::iota(side.order.begin(), side.order.end(), int64_t{0});
  std::rotate(side.order.begin(), side.order.begin() + 1, side.order.end() - 1);
  std::rotate(side.roles.begin(), side.roles.end() - 2, side.roles.end() - 1);
  return side;
}

/// How many axes PRODUCT has, if the ranks of its operands allow a product of heads.
Matched<size_t> rank_of(Node& product, MatchContext& context) {
  if (!product.input(0) || !product.input(1)) return missed("product.unknown-rank", &product, "an operand is left out");
  const MaybeShape one = context.facts.shape(*product.inputs[0]);
  const MaybeShape other = context.facts.shape(*product.inputs[1]);
  if (!one || !other) return missed("product.unknown-rank", &product, "an operand's rank is not known");
  const bool moves_batch = has_batch_behind(product, 0) || has_batch_behind(product, 1);
  if (one->size() < 2 || other->size() < 2 || (moves_batch && one->size() != other->size()))
    return missed("product.rank", &product, to_string(*one) + " and " + to_string(*other));
  if (moves_batch && one->size() < 3) return missed("product.fused", &product, "an operand without batch axes has them moved");
  return std::max(one->size(), other->size());
}

/// Batch and heads of a merged axis of SIZE, that of one operand of a product whose merged axis falls apart as SPLIT; nullopt
/// where the operand may have one of them for all.
std::optional<LeadingSplit> split_of(const Dim& size, const LeadingSplit& split, const Facts& facts) {
  if (size.is(1)) return LeadingSplit{1, 1};
  if (size == split.batch * split.heads) return split;
  const std::optional<Dim> batch = exact_quotient(size, split.heads);
  if (!batch) return facts.may_assume() ? std::optional(split) : std::nullopt;
  // What is a multiple of two or more heads is not 1, and the product wants it equal.
  const bool is_equal = split.heads.is_constant() && split.heads.value() > 1;
  return is_equal ? split : LeadingSplit{*batch, split.heads};
}

/// Batch and heads of leading axes of SIZES and ROLES that hold them otherwise than SPLIT says, merged with each other or
/// parted elsewhere; nullopt if they hold them so, or something else.
std::optional<LeadingSplit> regrouped_split(const Shape& sizes, const std::vector<Role>& roles, const LeadingSplit& split) {
  LeadingSplit own{1, 1};
  for (size_t axis = 0; axis + 2 < sizes.size(); ++axis) {
    Dim& size = roles[axis] == Role::kHead ? own.heads : own.batch;
    size = size * sizes[axis];
  }
  return own.batch != split.batch && own.batch * own.heads == split.batch * split.heads ? std::optional(split) : std::nullopt;
}

/// ADDEND of PRODUCT, a Gemm of keys by queries, as it is added to queries by keys.
Matched<Value*> turned_addend(Value& addend, Node& product, MatchContext& context) {
  const MaybeShape shape = context.facts.shape(addend);
  if (!shape) return missed("product.gemm", &product, "a bias of unknown rank");
  InnerValues inner(product, context);
  return shape->empty() ? &addend : shape->size() == 1 ? inner.unsqueezed(&addend, {1}) : inner.transposed(&addend, {1, 0});
}

}  // namespace

std::vector<Role> matmul_roles(size_t rank, Role last_but_one, Role last, size_t head_axes) {
  std::vector<Role> roles(rank, Role::kBatch);
  roles[rank - 1] = last;
  roles[rank - 2] = last_but_one;
  std::fill(roles.end() - 2 - static_cast<std::ptrdiff_t>(std::min(head_axes, rank - 2)), roles.end() - 2, Role::kHead);
  return roles;
}

bool is_product(const Node& node) {
  static constexpr OperatorSet kProducts = {"MatMul", "Einsum", "Gemm"};
  return node.output(0) && (kProducts.has(node) || is_fused_matmul(node));
}

bool may_make_product(const Node& node) {
  static constexpr OperatorSet kSums = {"ReduceSum", "ReduceMean"};
  return is_product(node) || kSums.has(node);
}

bool may_copy_product(Value& value, Facts& facts) {
  const Node* maker = unmoved(value, facts).producer;
  return maker && may_make_product(*maker);
}

bool makes_product(const Node& node, Facts& facts) { return is_product(node) || factors_added_up(node, facts); }

bool multiplies(const Node& node, const Value& operand, Facts& facts) {
  const Node* factors = factors_added_up(node, facts);
  return is_product(node) || (factors && std::ranges::find(factors->inputs, &operand) != factors->inputs.end());
}

bool quantizes_for_product(const Node& node) {
  return multiplies_integers(node) || (quantizes(node) && is_multiplied_quantized(*node.outputs[0], kMostAfterQuantizing));
}

bool has_equal_ranks(const Node& product, Facts& facts) {
  if (factors_added_up(product, facts) || (product.is("Einsum") && operands_of(product, facts).size() != 2)) return true;
  const MaybeShape one = facts.shape(*product.inputs[0]), other = facts.shape(*product.inputs[1]);
  return one && other && one->size() == other->size();
}

bool has_equal_batches(const Node& product, Facts& facts) {
  if (!has_equal_ranks(product, facts)) return false;
  if (!product.is("MatMul")) return true;
  const Shape &one = facts.shape(*product.inputs[0]).known(), &other = facts.shape(*product.inputs[1]).known();
  return one.size() < 3 || one.front().is(1) == other.front().is(1);
}

Matched<ScoreProduct> score_product(Node& product, const ScoreLayout& layout, MatchContext& context) {
  if (is_lettered(product, layout, context.facts)) return lettered_score_product(product, layout, context);
  const bool transposed = layout.swaps_last_two();
  if (!transposed && !layout.order.empty())
    return missed("scores.transpose", &product, "the product with V takes more than queries and keys from other places");
  ATTN_OPT_DONE(check_no_layer(product, transposed ? 0 : 1, context.facts));
  ATTN_OPT_MATCH(const size_t rank, rank_of(product, context));
  ScoreProduct read;
  const ProductSide rows = side_of(product, 0, rank, Role::kRow, Role::kFeature, context, layout.head_axes);
  const ProductSide columns = side_of(product, 1, rank, Role::kFeature, Role::kRow, context, layout.head_axes);
  read.query = transposed ? columns : rows;
  read.key = transposed ? rows : columns;
  const MaybeShape scores = context.facts.shape(*product.outputs[0]);
  if (!scores) return missed("product.unknown-rank", &product, "the scores' rank is not known");
  read.scores = layout.placed(*scores);
  ATTN_OPT_MATCH(read.scale, factor_of_product(product, context.facts));
  read.addend = addend_of(product, context.facts);
  if (read.addend && transposed) {
    ATTN_OPT_MATCH(read.addend, turned_addend(*read.addend, product, context));
  }
  if (read.addend) read.addend_scale = product.float_attribute("beta", 1);
  return read;
}

Matched<ValueProduct> value_product(Node& product, Value& probabilities, MatchContext& context,
                                    std::optional<size_t> head_axes) {
  if (std::ranges::count(operands_of(product, context.facts), &probabilities) > 1)
    return missed("product.probabilities-on-wrong-side", &product, "the product is that of probabilities and themselves");
  const size_t at = product.inputs[0] == &probabilities ? 0 : 1;
  if (is_lettered(product, {}, context.facts) || has_batch_behind(product, at))
    return lettered_value_product(product, probabilities, context, head_axes);
  ATTN_OPT_DONE(check_no_layer(product, 1 - at, context.facts));
  ATTN_OPT_MATCH(const size_t rank, rank_of(product, context));
  ATTN_OPT_MATCH(const double factor, factor_of_product(product, context.facts));
  if (addend_of(product, context.facts)) return missed("product.gemm", &product, "a bias is added to the result");
  if (context.facts.shape(probabilities).known().size() != rank)
    return missed("product.rank", &product, "V has more axes than the probabilities");
  // A Gemm of other ranks than 2, which no model may have, is declared to make anything.
  if (!context.facts.shape(*product.outputs[0]).has_rank(rank))
    return missed("product.unknown-rank", &product, "the result's rank is not known, or not that of what is multiplied");
  ValueProduct read;
  const bool behind = at == 1;
  const Role rows = behind ? Role::kFeature : Role::kRow, columns = behind ? Role::kRow : Role::kFeature;
  const size_t heads = head_axes.value_or(1);
  read.value = side_of(product, 1 - at, rank, rows, columns, context, heads);
  read.value.value = InnerValues(product, context).scaled(read.value.value, factor);
  read.factor = factor;
  read.output = {product.outputs[0], matmul_roles(rank, rows, columns, heads)};
  if (behind != is_transposed(product, at)) read.probabilities = ScoreLayout::keys_by_queries(rank);
  return read;
}

bool join_head_axes(ScoreProduct& scores, ValueProduct& values, Facts& facts) {
  constexpr size_t kLeastRank = 5;  // batch, heads, those that share one, rows and features
  ProductSide* const sides[] = {&scores.query, &scores.key, &values.value, &values.output};
  const size_t rank = scores.query.roles.size();
  for (const ProductSide* side : sides)
    if (rank < kLeastRank || side->roles.size() != rank || !side->order.empty() || side->roles[rank - 3] != Role::kHead ||
        side->roles[rank - 4] != Role::kBatch)
      return false;
  const Shape& query = facts.shape(*scores.query.value).known();
  const Dim &own = query[rank - 4], &sharing = query[rank - 3];
  if (!own.is_constant() || !sharing.is_constant() || sharing.is(1)) return false;
  for (const ProductSide* shared : {&scores.key, &values.value}) {
    const Shape& shape = facts.shape(*shared->value).known();
    if (shape[rank - 4] != own || !shape[rank - 3].is(1)) return false;
  }
  for (ProductSide* side : sides) side->roles[rank - 4] = Role::kHead;
  return true;
}

AxisMap axes_of(const ProductSide& side, const std::optional<LeadingSplit>& split, MatchContext& context) {
  const Shape& shape = context.facts.shape(*side.value).known();
  const auto map_of = [&](const Shape& sizes, const std::vector<Role>& roles) {
    const bool is_merged = split && roles[0] == Role::kHead;
    const auto own = is_merged ? split_of(sizes[0], *split, context.facts)
                     : split   ? regrouped_split(sizes, roles, *split)
                               : std::nullopt;
    if (!own) return AxisMap::of(sizes, roles);
    const std::ptrdiff_t leading = is_merged ? 1 : std::ssize(sizes) - 2;
    Shape parts{own->batch, own->heads};
    std::vector<Role> of_parts{Role::kBatch, Role::kHead};
    if (std::ranges::find(roles, Role::kRow) == roles.end()) {
      parts.push_back(1);
      of_parts.push_back(Role::kRow);
    }
    parts.insert(parts.end(), sizes.begin() + leading, sizes.end());
    of_parts.insert(of_parts.end(), roles.begin() + leading, roles.end());
    Shape taken = sizes;
    if (is_merged) taken[0] = own->batch * own->heads;
    return AxisMap::of(parts, of_parts).regrouped(taken).value_or(AxisMap::of(sizes, roles));
  };
  if (side.order.empty()) return map_of(shape, side.roles);
  Shape ordered;
  std::vector<Role> roles;
  for (const int64_t axis : side.order) {
    ordered.push_back(shape[static_cast<size_t>(axis)]);
    roles.push_back(side.roles[static_cast<size_t>(axis)]);
  }
  return map_of(ordered, roles).before_transpose(side.order);
}

}  // namespace attn_opt
