// Columns: the elements of a value's last axes, numbered in their order, whatever stands on the axes in front of them.
//
//   x (batch, heads, seq, 8) has 8 columns on its last axis; Reshape to (batch, heads, seq, 4, 2) has the same on its last two.
#pragma once

#include <compare>
#include <optional>
#include <vector>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

/// Column INDEX of VALUE.
struct Column {
  Value* value = nullptr;
  size_t index = 0;
  auto operator<=>(const Column&) const = default;
};

/// The most columns that are told apart.
inline constexpr size_t kMaxColumns = 4096;

/// Sizes of the last AXES axes of VALUE, 1 for each that it lacks; nullopt if they are not known or hold too many columns.
std::optional<Dims> column_sizes(const Value& value, size_t axes, Facts& facts);

/// How many axes VALUE has behind the first LEAD ones, if those have the sizes of the first LEAD axes of SHAPE; nullopt if they
/// do not.
std::optional<size_t> axes_behind(const Value& value, const Shape& shape, size_t lead, Facts& facts);

/// The columns of VALUE, behind its first LEAD axes, as those of what its producer reads, which has the same first axes. Empty
/// if the producer does more than move columns.
std::vector<Column> moved_columns(const Value& value, size_t lead, Facts& facts);

/// Where in a value of column sizes FROM stands what broadcasts to column INDEX of sizes TO. Both have as many axes.
size_t broadcast_column(size_t index, const Dims& to, const Dims& from);

}  // namespace attn_opt
