// What Slices say of where they begin and end.
#pragma once

#include <optional>
#include <vector>

#include "src/match/shape_rules/shape_rule.h"

namespace attn_opt {

struct SliceBounds {
  std::vector<Dim> begins, ends;  ///< empty: not known
  std::optional<std::vector<int64_t>> axes, steps;
};

/// What the node of CONTEXT, a Slice, says.
SliceBounds bounds_of(const RuleContext& context);

/// True if another Slice of what the node of CONTEXT cuts, or of what may be a copy of that, ends at BEGIN or begins at END:
/// together they are as long as both, however long each is. Bounded.
bool has_part_beside(const RuleContext& context, const Dim& begin, const Dim& end);

}  // namespace attn_opt
