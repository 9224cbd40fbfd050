// Fourier transforms by their definition, which takes time quadratic in their length.
#pragma once

#include "src/exec/kernel.h"

namespace attn_opt {

struct Transform {
  bool inverse = false, onesided = false;
  int64_t axis = 0;
  int64_t points = 0;    ///< of the transform
  int64_t in = 0;        ///< elements along the axis
  bool complex = false;  ///< the input has imaginary parts

  bool gives_real() const { return inverse && onesided; }
  int64_t out() const { return onesided && !inverse ? points / 2 + 1 : points; }
};

/// X, whose last axis is that of complex numbers, transformed.
Expected<Tensor> transformed(const KernelContext& context, const Tensor& x, const Transform& transform);

}  // namespace attn_opt
