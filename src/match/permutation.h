// What a Transpose does to axes, with or without perm, and a Gather to the elements along one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

/// The axes of its input of RANK, counted from the front, that NODE, a Transpose, puts in this order: without perm all the
/// other way round. Empty for any other node, and for a perm of another rank.
std::vector<int64_t> permutation(const Node& node, size_t rank);

/// The same, of the rank that perm has or else is known; empty if neither is.
std::vector<int64_t> permutation(const Node& node, Facts& facts);

/// The places along AXIS of its input that the elements of a result come from: each once.
struct GatheredOrder {
  size_t axis = 0;
  std::vector<int64_t> places;
};

/// The order in which NODE, a Gather, puts all elements along an axis; nullopt if it does anything else, or if that is not
/// known.
std::optional<GatheredOrder> gathered_order(const Node& node, Facts& facts);

}  // namespace attn_opt
