// Rotary position embedding as the operators of com.microsoft do it.
#pragma once

#include <vector>

#include "src/exec/kernel.h"

namespace attn_opt {

class RotaryCaches {
 public:
  /// Inputs COS and SIN: (positions, half the features that are rotated).
  static Expected<RotaryCaches> read(const KernelContext& context, size_t cos, size_t sin);

  int64_t rotated() const { return 2 * half_; }  ///< features of a head that are rotated
  int64_t positions() const { return half_ == 0 ? 0 : static_cast<int64_t>(cos_.size()) / half_; }

  /// Rotates X (B, H, S, D), in place: row S of batch element B stands at POSITIONS[B * S_COUNT + S]. INTERLEAVED: the pairs
  /// are neighbours, else each feature of the first half goes with that of the second.
  Status rotate(const KernelContext& context, Tensor& x, const std::vector<int64_t>& positions, bool interleaved) const;

 private:
  int64_t half_ = 0;
  std::vector<double> cos_, sin_;
};

}  // namespace attn_opt
