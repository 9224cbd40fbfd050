// Smaller numbers for the large constant extents of a site: what its shapes are is the same for any.
#pragma once

#include "src/verify/sizes.h"

namespace attn_opt {

/// The large constant extents of batch and sequence that no attribute or integer of SITE means, nor, unless constants are
/// changed too (RENUMBERS), a list of sizes or the extent of a constant: then an extent that sizes are multiples of makes all
/// that follow it smaller.
Shrinking shrinkable(const CutSite& site, const Sdpa& sdpa, bool renumbers, Facts& facts);
Shrinking with_other_numbers(Shrinking shrinking);

/// Gives the Constant nodes of MODEL the numbers of SIZES.
void renumber_constants(const SizeAssignment& sizes, onnx::ModelProto& model);

}  // namespace attn_opt
