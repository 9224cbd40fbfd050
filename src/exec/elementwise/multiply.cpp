#include <cblas.h>

#include <limits>
#include <mutex>

#include "src/exec/reduction/wide_product.h"

#ifdef ATTN_OPT_UNLOCKED_BLAS
// OpenBLAS without threads looks for a free buffer without a lock, so that two callers may get the same one. The linker is
// told (--wrap) that what asks for buffers asks here.
extern "C" {
void* __real_blas_memory_alloc(int position);
void __real_blas_memory_free(void* buffer);

static std::mutex blas_buffers;

void* __wrap_blas_memory_alloc(int position) {
  const std::lock_guard lock(blas_buffers);
  return __real_blas_memory_alloc(position);
}

void __wrap_blas_memory_free(void* buffer) {
  const std::lock_guard lock(blas_buffers);
  __real_blas_memory_free(buffer);
}
}
#endif

namespace attn_opt {
namespace {

static_assert(kLargestExtent <= std::numeric_limits<blasint>::max());

void use_one_thread() {
  static std::once_flag once;
  std::call_once(once, [] { openblas_set_num_threads(1); });
}

template <class T>
void multiply_integers(const MatrixProduct& p, const T* a, const T* b, T* c) {
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      uint64_t sum = 0;
      for (int64_t l = 0; l < p.k; ++l) {
        sum += static_cast<uint64_t>(p.transpose_a ? a[l * p.m + i] : a[i * p.k + l]) *
               static_cast<uint64_t>(p.transpose_b ? b[j * p.k + l] : b[l * p.n + j]);
      }
      T& to = c[i * p.n + j];
      const uint64_t scaled = sum * static_cast<uint64_t>(static_cast<int64_t>(p.alpha));
      to = static_cast<T>(scaled +
                          (p.beta == 0 ? 0 : static_cast<uint64_t>(to) * static_cast<uint64_t>(static_cast<int64_t>(p.beta))));
    }
  }
}

}  // namespace

template <class T>
void multiply(const MatrixProduct& p, const T* a, const T* b, T* c) {
  if (p.m == 0 || p.n == 0) return;
  if constexpr (std::is_integral_v<T>) {
    multiply_integers(p, a, b, c);
  } else {
    if constexpr (std::is_same_v<T, float>) {
      if (is_for_wide_vectors(p)) return multiply_wide(p, a, b, c);
    }
    use_one_thread();
    const auto ta = p.transpose_a ? CblasTrans : CblasNoTrans;
    const auto tb = p.transpose_b ? CblasTrans : CblasNoTrans;
    const auto m = static_cast<blasint>(p.m);
    const auto n = static_cast<blasint>(p.n);
    const auto k = static_cast<blasint>(p.k);
    const blasint lda = std::max<blasint>(1, p.transpose_a ? m : k);
    const blasint ldb = std::max<blasint>(1, p.transpose_b ? k : n);
    if constexpr (std::is_same_v<T, float>) {
      cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, static_cast<float>(p.alpha), a, lda, b, ldb, static_cast<float>(p.beta), c,
                  n);
    } else {
      cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, p.alpha, a, lda, b, ldb, p.beta, c, n);
    }
  }
}

namespace {

int64_t rows_of_a_block(const MatrixProduct& p) {
  constexpr int64_t kFewest = 128;
  const double row_work = static_cast<double>(p.n) * static_cast<double>(p.k);
  const double rows = static_cast<double>(kBlockWork) / std::max(row_work, 1.0);
  return p.transpose_a || rows >= static_cast<double>(p.m) ? p.m : std::max(kFewest, static_cast<int64_t>(rows));
}

}  // namespace

template <class T>
void multiply(ThreadPool& pool, const MatrixProduct& p, const T* a, const T* b, T* c) {
  if constexpr (std::is_same_v<T, float>) {
    if (is_for_wide_vectors(p)) return multiply_wide(pool, p, a, b, c);
  }
  const int64_t rows = rows_of_a_block(p);
  const int64_t blocks = rows > 0 ? (p.m + rows - 1) / rows : 0;
  pool.parallel_for(blocks, [&](int64_t block) {
    MatrixProduct part = p;
    part.m = std::min(rows, p.m - block * rows);
    multiply(part, a + block * rows * p.k, b, c + block * rows * p.n);
  });
}

template void multiply<float>(const MatrixProduct&, const float*, const float*, float*);
template void multiply<double>(const MatrixProduct&, const double*, const double*, double*);
template void multiply<float>(ThreadPool&, const MatrixProduct&, const float*, const float*, float*);
template void multiply<double>(ThreadPool&, const MatrixProduct&, const double*, const double*, double*);
template void multiply<int8_t>(ThreadPool&, const MatrixProduct&, const int8_t*, const int8_t*, int8_t*);
template void multiply<int16_t>(ThreadPool&, const MatrixProduct&, const int16_t*, const int16_t*, int16_t*);
template void multiply<int32_t>(ThreadPool&, const MatrixProduct&, const int32_t*, const int32_t*, int32_t*);
template void multiply<int64_t>(ThreadPool&, const MatrixProduct&, const int64_t*, const int64_t*, int64_t*);
template void multiply<uint8_t>(ThreadPool&, const MatrixProduct&, const uint8_t*, const uint8_t*, uint8_t*);
template void multiply<uint16_t>(ThreadPool&, const MatrixProduct&, const uint16_t*, const uint16_t*, uint16_t*);
template void multiply<uint32_t>(ThreadPool&, const MatrixProduct&, const uint32_t*, const uint32_t*, uint32_t*);
template void multiply<uint64_t>(ThreadPool&, const MatrixProduct&, const uint64_t*, const uint64_t*, uint64_t*);

}  // namespace attn_opt
