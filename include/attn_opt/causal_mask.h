// Masks that are causal whatever the model's inputs hold.
//
// A mask's elements are followed as functions of where they stand: integer tensors as sums of multiples of their indices
// (Range and what is added to it), others as tables over inequalities of such sums (comparisons, Trilu, triangular
// constants, and what is computed from those). What hangs on anything else is not read.
#pragma once

#include <optional>
#include <string>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

/// Element (i, j) of a mask is as wanted if j <= i + OFFSET.
struct CausalMask {
  std::optional<Dim> offset;  ///< none: every element is as wanted
  double otherwise = 0;       ///< the largest of the other elements
};

/// MASK's elements for QUERIES and KEYS, its last two axes, that are WANTED and those that are not. The error says what is
/// in the way.
tl::expected<CausalMask, std::string> causal_mask(Value& mask, double wanted, const Dim& queries, const Dim& keys,
                                                  Facts& facts);

}  // namespace attn_opt
