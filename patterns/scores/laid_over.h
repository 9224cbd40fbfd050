// Operators that leave elements by their places alone, and have others in the place of the rest.
//
//   Trilu(a)  =>  Trilu(true) ? a : 0      Scatter(a, places, number)  =>  Scatter(false, places, true) ? number : a
#pragma once

#include <optional>

#include "attn_opt/pattern.h"
#include "patterns/scores/score_form.h"

namespace attn_opt {

/// True for these operators, of their first input.
bool lays_over(const Node& node);

/// Where NODE, which lays_over(), leaves its input, by booleans made above READER; nullopt where shapes are not known.
std::optional<Literal> left_by(const Node& node, Node& reader, MatchContext& context);

}  // namespace attn_opt
