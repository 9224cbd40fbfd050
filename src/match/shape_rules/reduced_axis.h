// Which axes a reduction takes away.
#pragma once

#include "attn_opt/facts.h"

namespace attn_opt {

/// The axes, counted from the front and in ascending order, that NODE, a Reduce*, takes away of an input of RANK; nullopt if
/// they are not known, or are no axes.
std::optional<std::vector<size_t>> reduced_axes(const Node& node, size_t rank, Facts& facts);
/// The axis, counted from the front, that NODE, a Reduce*, takes away of an input of RANK; nullopt if it is not known to be one
/// alone.
std::optional<size_t> reduced_axis(const Node& node, size_t rank, Facts& facts);

}  // namespace attn_opt
