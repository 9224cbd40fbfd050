// Contents of the inputs of an edit that is no attention.
#pragma once

#include "src/exec/layout/random_numbers.h"
#include "src/verify/draws.h"

namespace attn_opt {

/// Draws a tensor of TYPE and DIMS element by element. kRandom: normal numbers, and 0 or 1 for what is not floating, which is
/// right for indices too. kWide: each row of floating numbers has a size of its own, integers are negative too.
/// kScattered: each number has. kNoNumbers: some are NaN, some infinite.
class ValueDraw {
 public:
  /// NUMBERS: those that scattered values meet.
  ValueDraw(DrawKind kind, DataType type, const Dims& dims, const std::vector<double>& numbers, RandomNumbers random);

  double operator()(int64_t index);

 private:
  double number(int64_t index);

  DrawKind kind_;
  DataType type_;
  int64_t columns_;
  std::vector<double> sizes_;  ///< of scattered numbers
  RandomNumbers random_;
};

}  // namespace attn_opt
