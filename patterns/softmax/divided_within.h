// A product of exponentials and V that their inverse sums are a factor of.
//
//   Einsum(e, V, 1 / sum(e))  =>  Einsum(e / sum(e), V)
#pragma once

#include <optional>

#include "attn_opt/pattern.h"
#include "patterns/softmax/key_blocks.h"

namespace attn_opt {

/// The softmax that EINSUM, of three operands or more, takes of one of them by another, and the product of it; nullopt if it
/// takes none.
std::optional<KeyBlocks> divided_within(Node& einsum, MatchContext& context);

}  // namespace attn_opt
