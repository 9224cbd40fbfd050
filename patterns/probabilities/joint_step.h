// Several nodes that make of a value together what one says.
//
//   |x| Sign(x)  =>  x      Max(x, 0) - Max(-x, 0)  =>  x      (linear_function.h)
//   Relu(p)  =>  p      Clip(p, 0, 1)  =>  p      where p are shares of a row
//   a x + b x  =>  (a + b) x          Where(c, x, 0) + Where(c, 0, 0)  =>  Where(c, x, 0)
#pragma once

#include <optional>

#include "attn_opt/pattern.h"
#include "patterns/readers.h"

namespace attn_opt {

struct JointStep {
  Value* made = nullptr;
  std::optional<Reader> one = {};  ///< a Mul by a number, or a Where with 0, that says the same; none: MADE is a copy
};

/// What is known of the numbers of a value.
struct KnownShares {
  bool are_shares = false;        ///< of rows: from 0 to 1
  bool are_divided_late = false;  ///< behind V: weights that are shares then
};

/// The nearest value that READERS, all of VALUE, make of it together, being the only ones, or one further on that is a copy;
/// nullopt if there is none. Bounds are told of SHARES alone.
std::optional<JointStep> joint_step(const Readers& readers, Value& value, const KnownShares& shares, MatchContext& context);

}  // namespace attn_opt
