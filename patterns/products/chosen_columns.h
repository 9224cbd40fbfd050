// Products with constant matrices that add nothing up: each column holds one number beside zeros, the same in all.
//
//   x (c I)  =>  c * x      x (c P)  =>  c * Gather(x, columns)      (c P) x  =>  c * Gather(x, rows)
#pragma once

#include <optional>
#include <vector>

#include "attn_opt/pattern.h"

namespace attn_opt {

/// FACTOR times those elements of SOURCE that lie at PLACES of its axis AXIS, the last or the last but one; of no PLACES, all.
struct ChosenColumns {
  Value* source = nullptr;
  int64_t axis = 0;
  double factor = 1;
  std::vector<int64_t> places;
};

/// What PRODUCT, a MatMul of (..., M, N) and a constant (N, N'), or of a constant (M', M) and that, chooses of what is no
/// constant; nullopt if it adds anything up.
std::optional<ChosenColumns> chosen_columns(const Node& product, Facts& facts);

/// What CHOSEN, of PRODUCT, is without its factor: the source, or a Gather of it that is unplaced.
Value* chosen_value(const ChosenColumns& chosen, Node& product, MatchContext& context);

}  // namespace attn_opt
