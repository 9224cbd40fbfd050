// Matrix products, shared by MatMul, Gemm, Einsum and Conv.
#pragma once

#include <limits>

#include "src/exec/kernel.h"

namespace attn_opt {

/// Rows or columns that BLAS takes.
inline constexpr int64_t kLargestExtent = std::numeric_limits<int32_t>::max();
/// Multiplications below which handing them to another thread does not pay.
inline constexpr int64_t kBlockWork = int64_t{1} << 22;

/// One product C = alpha * op(A) op(B) + beta * C, all contiguous and row-major; op transposes where asked.
struct MatrixProduct {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 0;
};

/// float and double by BLAS; integers wrap around. C is not read when beta is 0.
template <class T>
void multiply(const MatrixProduct& shape, const T* a, const T* b, T* c);

/// The same by the threads of POOL: blocks of rows whose number follows from SHAPE alone.
template <class T>
void multiply(ThreadPool& pool, const MatrixProduct& shape, const T* a, const T* b, T* c);

/// kLimit for extents that BLAS cannot take.
Status check_extents(const KernelContext& context, const MatrixProduct& shape);

/// Numpy's matmul. Halves are computed in float and rounded once.
Expected<Tensor> matmul(const KernelContext& context, const Tensor& a, const Tensor& b);

/// FLOAT for half types, else the type itself: what products of TYPE are computed in.
DataType product_type(DataType type);

}  // namespace attn_opt
