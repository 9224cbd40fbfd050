// What is true of an operator whatever its attributes and inputs: the one list of names behind the recogniser's questions.
#pragma once

#include <cstdint>
#include <string_view>

#include "attn_opt/graph.h"

namespace attn_opt {

/// What may be true of an operator.
enum class Trait : uint32_t {
  kRegroups = 1 << 0,     ///< the first input's elements in their order, with other axes
  kKeepsAll = 1 << 1,     ///< each element of the first input once, in whatever order
  kMoves = 1 << 2,        ///< elements of the first input and nothing else: repeated, left out or moved
  kCommutes = 1 << 3,     ///< the order of its operands does not matter
  kAdds = 1 << 4,         ///< a sum of its operands, each times a number that is the same for all elements
  kMultiplies = 1 << 5,   ///< a product of its first operand and the second, or what is one divided by that
  kElementwise = 1 << 6,  ///< an element of the result depends on those of its operands, which broadcast, in its place
  kSelects = 1 << 7,      ///< an element of the result is that of an operand in its place
  kReduces = 1 << 8,      ///< one element of all those of the first input along axes, which lose them or have the size 1 there
  kExponential = 1 << 9,  ///< takes exponentials, as a softmax does: where what is equal is worth one computation
};

/// Whether OP_TYPE, an operator of ONNX's own domain, has TRAIT.
bool operator_has(std::string_view op_type, Trait trait);

/// Whether NODE's operator has TRAIT; none of another domain has.
bool has(const Node& node, Trait trait);

/// How many times NODE, which has Trait::kAdds, adds its input INPUT: -1 of what is subtracted, 1 / n of each of n in a mean.
double times_added(const Node& node, size_t input);

}  // namespace attn_opt
