// Layout operators that together swap the last two axes at most.
//
//   p (B, H, L, S) ─ Reshape ─ Transpose ─ Reshape ─ (B, H, S, L)      p ─ Unsqueeze ─ Transpose ─ Squeeze ─ p again
#pragma once

#include <optional>

#include "attn_opt/pattern.h"

namespace attn_opt {

struct LayoutEnd {
  Value* made = nullptr;
  bool swaps = false;  ///< its last two axes are those of the beginning, the other way round
};

/// What a chain of layout operators over VALUE from FIRST on makes, each the only reader of the one before, as soon as the last
/// two axes are VALUE's again, in whatever order, and the leading ones in theirs. Nullopt if there is none.
std::optional<LayoutEnd> layout_end(const Value& value, Node& first, MatchContext& context);

}  // namespace attn_opt
