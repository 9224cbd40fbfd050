// The two products of attention, and which axis of their operands is what.
#pragma once

#include <optional>
#include <vector>

#include "attn_opt/miss.h"
#include "attn_opt/pattern.h"
#include "patterns/scores/score_layout.h"

namespace attn_opt {

/// An operand or result of a product with the role of each axis. A single leading axis has the role of the heads.
struct ProductSide {
  Value* value = nullptr;
  std::vector<Role> roles;
  std::vector<int64_t> order = {};  ///< the axes in the order of their factors, where that is not the value's own
};

struct ScoreProduct {
  ProductSide query, key;
  Shape scores;             ///< batch axes, head axes, queries, keys
  double scale = 1;         ///< that the product itself multiplies by
  Value* addend = nullptr;  ///< a bias that the product itself adds, times addend_scale
  double addend_scale = 1;
};

struct ValueProduct {
  ProductSide value, output;
  ScoreLayout probabilities;
  double factor = 1;  ///< that the product itself multiplies by, of VALUE
};

/// How a single leading axis of B*H falls apart.
struct LeadingSplit {
  Dim batch, heads;
};

/// True for operators that multiply their operands, and whose result is not left out.
bool is_product(const Node& node);

/// Cheap: false for what makes no result of a product.
bool may_make_product(const Node& node);
/// True if what makes VALUE, or what it is a copy of with its elements moved or not, may_make_product().
bool may_copy_product(Value& value, Facts& facts);

/// True for what makes the result of a product: that, or the ReduceSum or ReduceMean of an elementwise one.
bool makes_product(const Node& node, Facts& facts);

/// True if NODE is a product of OPERAND, or what adds up one.
bool multiplies(const Node& node, const Value& operand, Facts& facts);

/// True if NODE quantizes what it reads, for a product of its own or one behind.
bool quantizes_for_product(const Node& node);

/// False if an operand of PRODUCT has fewer axes than the other: it is the same for all of the leading ones.
bool has_equal_ranks(const Node& product, Facts& facts);
/// False if an operand of PRODUCT is the same for all of the batch, as a table of positions is.
bool has_equal_batches(const Node& product, Facts& facts);

/// Reads PRODUCT, a MatMul (also fused with transposes and a factor), Einsum, Gemm or the sum of a Mul, as Q K^T where
/// its result has LAYOUT. Misses: "product.*"; "scores.transpose": a product with transposes of its own has no such layout.
Matched<ScoreProduct> score_product(Node& product, const ScoreLayout& layout, MatchContext& context);

/// Reads PRODUCT as that of PROBABILITIES and V, which may stand first: V^T PROBABILITIES. HEAD_AXES of the leading axes are
/// heads; nullopt: as usual. Misses: "product.*".
Matched<ValueProduct> value_product(Node& product, Value& probabilities, MatchContext& context,
                                    std::optional<size_t> head_axes = std::nullopt);

/// The roles of the RANK axes, 2 or more, of a MatMul's operand or result: heads stand behind the batch.
std::vector<Role> matmul_roles(size_t rank, Role last_but_one, Role last, size_t head_axes = 1);

/// Takes the axis before the heads for heads too where those that stand beside it share the keys and values of one:
/// Q (..., 2, 3, L, D) with K and V (..., 2, 1, S, D). True if it did. Q's leading axes are to be those of the probabilities.
bool join_head_axes(ScoreProduct& scores, ValueProduct& values, Facts& facts);

/// The map of SIDE's axes; a single leading axis is split as SPLIT says.
AxisMap axes_of(const ProductSide& side, const std::optional<LeadingSplit>& split, MatchContext& context);

}  // namespace attn_opt
