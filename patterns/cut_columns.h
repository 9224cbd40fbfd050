// Columns that are cut off probabilities, of sinks that stood beside the scores; and off products, of ones that stood beside V.
#pragma once

#include <optional>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

/// How many columns are cut off at each end of the keys.
struct CutColumns {
  int64_t in_front = 0, behind = 0;

  bool is_none() const { return in_front == 0 && behind == 0; }
  bool operator==(const CutColumns&) const = default;
};

/// What is left of a value, and what was cut off.
struct Cut {
  Value* rest = nullptr;
  CutColumns columns;
};

/// What NODE, a Slice, Split, Gather or Pad, cuts off the axis KEYS before the last of its input; nullopt if it does anything
/// else.
std::optional<Cut> columns_cut_off(const Node& node, size_t keys, Facts& facts);

/// Columns of a product: that of its first operand and of VALUES, or of as many columns of ONES.
struct ProductColumns {
  Node* product = nullptr;
  Value* values = nullptr;
  bool are_ones = false;
};

/// The product that VALUE, what a Slice or Split leaves, holds columns of: MatMul(x, Concat(v, w)), or one with v padded.
/// Nullopt if it holds anything else.
std::optional<ProductColumns> columns_of_product(Value& value, Facts& facts);

/// What NODE, a Pad, adds at each end of the axis KEYS before the last, and nowhere else; less than 0: it cuts off. Nullopt if
/// that is not known.
std::optional<CutColumns> padded_columns(const Node& node, size_t keys, Facts& facts);

}  // namespace attn_opt
