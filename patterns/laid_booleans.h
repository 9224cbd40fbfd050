// Which booleans a mask lays over scores, and along which axes, whatever moves, casts, compares or negates them on the way. Of
// m (B, S), on the axes B and S of (B, H, L, S):
//
//   Unsqueeze(Not(m), (1, 2))      Not(Reshape(m, (B, 1, 1, S)))      Equal(Unsqueeze(Cast(m), (1, 2)), 0)      =>  not m
#pragma once

#include <string_view>
#include <vector>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"
#include "patterns/scores/conditions.h"

namespace attn_opt {

/// An operator of one value and a number, which makes of an element the same wherever that lies.
struct LaidStep {
  std::string_view op;
  double number = 0;      ///< the other operand; of a Cast the type that it makes
  bool is_first = false;  ///< the number is the first operand
  bool operator==(const LaidStep&) const = default;
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

}  // namespace attn_opt
