// Which booleans a mask lays over scores, and along which axes, whatever moves, casts, compares or negates them on the way. Of
// m (B, S), on the axes B and S of (B, H, L, S):
//
//   Unsqueeze(Not(m), (1, 2))      Not(Reshape(m, (B, 1, 1, S)))      Equal(Unsqueeze(Cast(m), (1, 2)), 0)      =>  not m
#pragma once

#include <vector>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"
#include "patterns/scores/conditions.h"

namespace attn_opt {

/// NODE, an elementwise operator of one value, its input INPUT, and NUMBERS, which makes TYPE of it.
struct LaidStep {
  const Node* node = nullptr;
  size_t input = 0;
  std::vector<double> numbers = {};  ///< of the other inputs
  DataType type = onnx::TensorProto::UNDEFINED;

  bool operator==(const LaidStep& other) const {
    return node->op() == other.node->op() && input == other.input && numbers == other.numbers && type == other.type;
  }
};

/// That what STEPS, last ones first, make of VALUE's elements is true, or false. Its axis i lies on the axis AXES[i] from the
/// last of what it is laid over; kOneElement: it has one element there.
struct LaidBooleans {
  static constexpr int kOneElement = -1;

  Value* value = nullptr;
  bool is_true = true;
  std::vector<LaidStep> steps = {};
  std::vector<int> axes = {};
  bool operator==(const LaidBooleans&) const = default;
};

/// What CONDITION lays over scores to which it broadcasts.
LaidBooleans laid_booleans(const Condition& condition, Facts& facts);

/// LAID over scores of the shape FRAME, with the axes counted that have another size than 1 in it.
LaidBooleans without_unit_axes(LaidBooleans laid, const Shape& frame);

}  // namespace attn_opt
