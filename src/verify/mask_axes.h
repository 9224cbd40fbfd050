// Where the keys lie in what a description computes its masks from: it transposes some, and puts some together from parts.
#pragma once

#include <cstddef>

#include "src/verify/site_cut.h"

namespace attn_opt {

/// Axes [BEGIN, END).
struct AxisRange {
  size_t begin = 0, end = 0;
};

/// The axes of INPUT that hold keys together if it is a mask: the last, or those that a description makes the last.
AxisRange key_axes_of_mask(const SiteInput& input, const Sdpa& sdpa);

/// True if a description picks rows, heads or batch elements of VALUE for a mask: which ones the site has is not known.
bool is_picked_from(const Value& value, const Sdpa& sdpa);

/// The bias that a description made from INPUT, so that what masks a key there masks it here; null if there is none.
const ScoreTerm* bias_made_from(const SiteInput& input, const Sdpa& sdpa);

}  // namespace attn_opt
