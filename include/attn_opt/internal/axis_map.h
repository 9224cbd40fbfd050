// Which part of a logical tensor each axis of a value holds, however it was transposed, split, merged or repeated.
//
// A logical operand of attention is a list of factors, outermost first: those of the leading axes (batch and heads),
// the rows (query or key positions) and the features. An axis of a value holds some of them, in row-major order. Walking
// from a product's operand up to where it comes from, each layout operator rewrites the map, nothing else:
//
//   K at the product  (b, h, d, s)     axes [b] [h] [d] [s]
//   Transpose 0,2,3,1 of (b, s, h, d)  axes [b] [s] [h] [d]
//   Reshape of (b, s, h*d)             axes [b] [s] [h d]
//
// A factor that is repeated (Expand of an axis of size 1) has no place in the axes of what it repeats.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attn_opt/internal/grouping.h"
#include "attn_opt/shape.h"

namespace attn_opt {

/// What a factor of a logical operand counts; kRow is queries or keys.
enum class Role : uint8_t { kBatch, kHead, kRow, kFeature };

/// One factor of a logical operand: repeated where one entry serves all of them (an expanded axis).
struct Factor {
  Role role = Role::kBatch;
  Dim size;
  bool repeated = false;
};

/// The factors that each axis of a value holds, outermost first.
class AxisMap {
 public:
  AxisMap() = default;
  /// Axes of one factor each, with the given roles and the sizes of SHAPE. Axes of size 1 hold nothing.
  static AxisMap of(const Shape& shape, const std::vector<Role>& roles);

  size_t rank() const { return axes_.rank(); }
  /// All factors in logical order: batch, head, row, feature.
  const std::vector<Factor>& factors() const { return factors_; }
  /// Indices into factors() of what axis AXIS holds.
  std::span<const int> axis(size_t axis) const { return axes_.axis(axis); }
  const Grouping& grouping() const { return axes_; }
  /// Product of the sizes of ROLE's factors that are (REPEATED) or are not repeated.
  Dim size(Role role, bool repeated = false) const;
  bool has_repeats() const;
  /// Indices into factors() of those of ROLE, repeated or not.
  std::vector<int> all_of_role(Role role) const;
  /// True if repeated head factors are the innermost ones, as GQA shares heads, or the only ones.
  bool repeats_interleave() const;

  /// The map of Transpose(X, PERM) where the map of X is this.
  AxisMap after_transpose(const std::vector<int64_t>& perm) const;
  /// The map of X where the map of Transpose(X, PERM) is this.
  AxisMap before_transpose(const std::vector<int64_t>& perm) const;
  /// The map of the same elements under SHAPE (Reshape in either direction); nullopt if the axes cannot be told apart.
  std::optional<AxisMap> regrouped(const Shape& shape) const;
  /// The map of X of shape BEFORE where the map of Expand(X) of shape AFTER is this.
  std::optional<AxisMap> before_expand(const Shape& before, const Shape& after) const;
  /// The map of a part of size SIZE along AXIS (Concat, Slice), which must hold all of ROLE, and that in one factor.
  std::optional<AxisMap> with_size(Role role, size_t axis, const Dim& size) const;
  /// The same with SIZES for the factors of ROLE, repeated or not, which are as many.
  AxisMap with_sizes(Role role, const std::vector<Dim>& sizes) const;
  /// Splits ROLE's factors in ONE, and OTHER_ROLE's in OTHER, until both have the same sizes in the same order; false if they
  /// cannot be.
  static bool split_alike(AxisMap& one, Role role, AxisMap& other, Role other_role);

  /// True if the axes are exactly batch, head, row, feature.
  bool is_bhsd() const { return is_order({Role::kBatch, Role::kHead, Role::kRow, Role::kFeature}); }
  /// True if the axes are exactly batch, row, (head, feature): what the operator's 3-D form takes.
  bool is_three_dimensional() const;
  /// True if there is an axis for each of ROLES, in that order, that holds exactly its factors.
  bool is_order(const std::vector<Role>& roles) const;
  /// The axis that holds exactly ROLE's factors; nullopt if there is none. TAKEN axes are passed over.
  std::optional<int64_t> axis_of(Role role, const std::vector<bool>& taken) const;

  /// "[b][s][h d]" for messages.
  std::string str() const;

 private:
  AxisMap(std::vector<Factor> factors, Grouping axes) : factors_(std::move(factors)), axes_(std::move(axes)) {}

  std::vector<int> of_role(Role role) const;
  /// True if AXIS holds exactly the factors of ROLE that are not repeated.
  bool holds(size_t axis, Role role) const { return std::ranges::equal(axes_.axis(axis), of_role(role)); }
  void split(int factor, const Dim& outer, const Dim& inner);
  std::vector<Factor> factors_;
  Grouping axes_;
};

}  // namespace attn_opt
