// Masks that follow from where a query and a key stand, whatever the model's inputs hold, but for lengths of sequences.
//
// A mask's elements are followed as functions of where they stand: integer tensors as sums of multiples of their indices
// (Range and what is added to it), perhaps with the length of the batch's sequence, others as tables over inequalities of
// such sums (comparisons, Trilu, triangular constants, and what is computed from those). What hangs on anything else is
// not read.
#pragma once

#include <optional>
#include <string>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

/// Element (b, i, j) of a mask is as wanted if i + LEAST <= j <= i + OFFSET and j < END, where those are given.
struct CausalMask {
  std::optional<Dim> offset;
  double otherwise = 0;  ///< the largest of the other elements
  std::optional<Dim> least = std::nullopt;
  std::optional<Dim> end = std::nullopt;  ///< counts from lengths[b]
  Value* lengths = nullptr;               ///< integers, one for each element of the batch, or for all
  bool counts_from_lengths = false;       ///< OFFSET and LEAST count from lengths[b] too

  bool keeps_all() const { return !offset && !least && !end; }
  /// True if the two keep the same keys.
  bool keeps_as(const CausalMask& other) const;
};

/// MASK's elements for QUERIES and KEYS, its last two axes, that are WANTED and those that are not. Lengths of a batch are
/// told apart on the fourth axis from the last. The error says what is in the way.
tl::expected<CausalMask, std::string> causal_mask(Value& mask, double wanted, const Dim& queries, const Dim& keys,
                                                  Facts& facts);

}  // namespace attn_opt
