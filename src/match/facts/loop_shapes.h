// Shapes of what a Loop carries from iteration to iteration.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "attn_opt/graph.h"
#include "attn_opt/shape.h"

namespace attn_opt {

inline constexpr size_t kFirstCarried = 2;  ///< of a body's inputs: behind the iteration's number and the condition

/// By the inputs of a Loop's body. An axis that may change from iteration to iteration is called by a name of its own; without
/// shape is what is not carried, or of which nothing is known.
using CarriedShapes = std::vector<std::optional<Shape>>;

/// Which input of its graph VALUE is; their number if it is none.
size_t place_among_inputs(const Value& value);

/// What is to be known before the shapes that LOOP carries are: what it starts with, and what its body reads from around it.
std::vector<const Value*> needed_for_carried(const Node& loop);

}  // namespace attn_opt
