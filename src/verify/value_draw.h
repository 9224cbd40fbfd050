// Contents of the inputs of an edit that is no attention.
#pragma once

#include "src/exec/layout/random_numbers.h"
#include "src/verify/draws.h"

namespace attn_opt {

/// Draws a tensor of TYPE and DIMS element by element. kRandom: normal numbers, and 0 or 1 for what is not floating, which is
/// right for indices too. kWide: each row of floating numbers has a size of its own, integers are negative too.
class ValueDraw {
 public:
  ValueDraw(DrawKind kind, DataType type, const Dims& dims, RandomNumbers random);

  double operator()(int64_t index);

 private:
  DrawKind kind_;
  DataType type_;
  int64_t columns_;
  RandomNumbers random_;
};

}  // namespace attn_opt
