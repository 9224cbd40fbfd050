// Columns that are cut off probabilities, of sinks that stood beside the scores; and off products, of ones that stood beside V.
#pragma once

#include <optional>
#include <vector>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"
#include "attn_opt/pattern.h"

namespace attn_opt {

/// How many columns are cut off at each end of the keys.
struct CutColumns {
  int64_t in_front = 0, behind = 0;

  /// These and OTHERS, which were cut off before or behind them.
  CutColumns with(const CutColumns& others) const { return {in_front + others.in_front, behind + others.behind}; }
  CutColumns without(const CutColumns& others) const { return {in_front - others.in_front, behind - others.behind}; }
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

/// What a Slice, Split or Gather leaves of a product along one axis: the product with VALUES in the place of one operand.
struct ProductPart {
  Node* product = nullptr;
  size_t operand = 0;              ///< the one that has that axis
  Value* values = nullptr;         ///< its axes are the operand's; null: ones
  std::vector<int64_t> axes = {};  ///< of the product's result, which those of the part are

  /// True if the part lies as the product's result, or, if SWAPPED, as that with its last two axes swapped.
  bool lies(bool swapped) const;
};

/// The product that VALUE is a part of, also where Transposes stand in between:
///
///   (x Concat(v, w)) cut at v  =>  x v      (x Pad(v)) cut at v  =>  x v      (x Concat(v, 1)) cut at 1  =>  x 1
///
/// Nullopt if it is none. What is made for it stands above READER.
std::optional<ProductPart> part_of_product(Value& value, Node& reader, MatchContext& context);

/// True if something reads a part of PRODUCT that is one with ones. What is made for it stands above READER.
bool has_ones_cut_off(const Node& product, Node& reader, MatchContext& context);

/// What NODE, a Pad, adds at each end of the axis KEYS before the last, and nowhere else; less than 0: it cuts off. Nullopt if
/// that is not known.
std::optional<CutColumns> padded_columns(const Node& node, size_t keys, Facts& facts);
/// The same of a Pad that adds zeros, and cuts nothing off; nullopt for others.
std::optional<CutColumns> padded_zeros(const Node& node, size_t keys, Facts& facts);

}  // namespace attn_opt
