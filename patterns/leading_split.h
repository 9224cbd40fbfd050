// Batch and heads of a site, which the values that it reads may have in other axes each.
#pragma once

#include <optional>

#include "attn_opt/pattern.h"
#include "patterns/probabilities/guard_meaning.h"
#include "patterns/products/leading_axes.h"

namespace attn_opt {

/// Reads the product with V anew, and the scores' layout, where other values of READING part batch and heads otherwise. Misses
/// as value_product().
Matched<void> part_leading_axes(Reading& reading, MatchContext& context);

/// Where the leading axes of READING are parted into batch and heads, or Q itself was merged from both; nullopt: nothing parts
/// them.
std::optional<LeadingSplit> leading_split(const Reading& reading, MatchContext& context);

/// Misses "probabilities.reshape" where the product with V, whose result lies as MADE says, has batch and heads that are not
/// those of SPLIT, though there are as many, or fewer: they were regrouped where a factor of one cannot be told from one of the
/// other.
Matched<void> check_leading_sizes(const AxisMap& made, const std::optional<LeadingSplit>& split, const Reading& reading);

/// Enters in SDPA the batch and query heads of READING, whose leading axes SPLIT parts.
void set_leading_sizes(const Reading& reading, const std::optional<LeadingSplit>& split, Sdpa& sdpa);

}  // namespace attn_opt
