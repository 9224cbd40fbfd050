#include "src/match/moved_from.h"

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"

namespace attn_opt {

Value& moved_from(Value& value, Facts& facts) {
  constexpr int kMostMoves = 8;
  Value* seen = &canonical(value, facts);
  for (int step = 0; step < kMostMoves && seen->producer; ++step) {
    const Node& node = *seen->producer;
    const bool keeps = has(node, Trait::kMoves) || node.is("Cast") || node.is("DequantizeLinear");
    if (!keeps || !node.input(0)) break;
    seen = &canonical(*node.inputs[0], facts);
  }
  return *seen;
}

}  // namespace attn_opt
