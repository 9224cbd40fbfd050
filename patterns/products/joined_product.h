// Scores that are the sum of two products: one product of features side by side (multi-head latent attention).
//
//   a * Q K^T + b * R K^T  =>  a * (Q + b / a * R) K^T
//   a * Q K^T + b * R T^T  =>  a * Concat(Q, b / a * R) Concat(K, T)^T
#pragma once

#include <optional>

#include "attn_opt/pattern.h"
#include "patterns/inner_values.h"

namespace attn_opt {

/// A product, and the number that it is multiplied with.
struct ScaledProduct {
  Value* value = nullptr;
  double scale = 1;
  bool sums_operands = false;  ///< one of its operands is a sum that the model does not make
};

/// Which operands of products may be summed where they share the other: queries, which lie so many axes before the last of the
/// result, or keys too. Caches of keys that are summed are none of the operator.
struct SummedSides {
  size_t queries = 1;
  bool may_sum_keys = false;
};

/// What NODE adds, as one product above it; nullopt if it adds anything but two products of the same rows and columns that it
/// alone reads.
std::optional<ScaledProduct> joined_product(Node& node, const SummedSides& sides, MatchContext& context);

/// The sum that NODE makes with two products added to each other first that are one, where one of them stands in a sum of its
/// own; null if none does.
///
///   Q K^T + (R T^T + m)  =>  (Q K^T + R T^T) + m
Value* products_first(Node& node, const SummedSides& sides, MatchContext& context);

/// ONE and OTHER side by side along AXIS, each with the sizes that the other has along further axes where its own are 1; null
/// if they do not fit. Transposes of both are taken behind that.
Value* side_by_side(Value& one, Value& other, int64_t axis, InnerValues& inner, Facts& facts);

}  // namespace attn_opt
