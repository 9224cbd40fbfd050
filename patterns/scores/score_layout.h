// How the axes of scores and probabilities lie between the two products.
//
// Most exporters write (leading axes, queries, keys). Others multiply K by Q, or let an Einsum put its letters in any order,
// and run the softmax over the axis that is the keys' there.
#pragma once

#include <optional>
#include <vector>

#include "attn_opt/pattern.h"
#include "patterns/layout_checks.h"

namespace attn_opt {

struct ScoreLayout {
  /// Axis ORDER[i] of the value is axis i of (batch axes, head axes, queries, keys), or kNoAxis; empty: each stands where it
  /// is.
  std::vector<int64_t> order;
  size_t head_axes = 1;

  /// Of a value of RANK axes whose last two are keys and queries; of fewer than two, each stands where it is.
  static ScoreLayout keys_by_queries(size_t rank);
  /// How many axes a value of this layout has; 0 if each stands where it is.
  size_t rank() const;
  /// True if nothing but the last two axes change places.
  bool swaps_last_two() const;
  /// SHAPE of a value, with its axes in their places.
  Shape placed(const Shape& shape) const;
  /// The layout of X where that of Transpose(X, PERM) is this.
  ScoreLayout before_transpose(const std::vector<int64_t>& perm) const;
  /// The layout of X, of RANK axes, where this is that of Y, whose axis i is axis ORIGINS[i] of X, or kNoAxis. Axes of X that
  /// are not among them are of size 1.
  ScoreLayout before_moves(const std::vector<int64_t>& origins, size_t rank) const;
  /// The layout of Y where this is that of X, of RANK axes, and axis i of Y is axis ORIGINS[i] of X, or kNoAxis.
  ScoreLayout behind_moves(const std::vector<int64_t>& origins, size_t rank) const;
  /// The layout of X of shape BEFORE where this is that of a Reshape of X to AFTER; nullopt unless that splits or joins leading
  /// axes which stand beside each other in both.
  std::optional<ScoreLayout> before_regrouping(const Shape& before, const Shape& after) const;
  /// The layout of Y where Y is X with its last two axes swapped, X being of RANK axes, and that of X is this.
  ScoreLayout swapped(size_t rank) const;
};

/// VALUE, which is laid over scores that READER reads in LAYOUT, with its axes in their places: itself, or transposed in an
/// unplaced node. Null if its rank is not known.
Value* placed(Value& value, const ScoreLayout& layout, Node& reader, MatchContext& context);

}  // namespace attn_opt
