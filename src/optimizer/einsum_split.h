// An Einsum of three operands or more as two: the product of all but one, and what maps that with the one.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace attn_opt {

struct EinsumSplit {
  size_t map = 0;             ///< the operand that maps the product of the others
  std::string product, rest;  ///< equations; in the second the product stands first
};

/// How an Einsum of the equation TEXT is split whose map has its own of something that the product has and the result adds up,
/// the product being paired along something that the map has none of; nullopt where no such split is the only one. One that
/// adds nothing up is read as it is: its map is taken into an operand, of Q and K or of V.
///
///   "bhqk,bhkd,hde->bqe"  =>  "bhqk,bhkd->bhqd" and "bhqd,hde->bqe"
std::optional<EinsumSplit> split_einsum(std::string text);

}  // namespace attn_opt
