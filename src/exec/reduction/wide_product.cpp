#include "src/exec/reduction/wide_product.h"

#include <cstring>

#include "src/exec/aligned_buffer.h"
#include "src/exec/interleave.h"
#include "src/exec/register_sums.h"

namespace attn_opt {

#ifndef ATTN_OPT_WIDE_VECTORS

bool is_for_wide_vectors(const MatrixProduct&) { return false; }
void multiply_wide(const MatrixProduct&, const float*, const float*, float*) {}
void multiply_wide(ThreadPool&, const MatrixProduct&, const float*, const float*, float*) {}

#else

namespace {

constexpr int kStrip = 2 * VectorOf<float, 64>::kSize;  ///< columns of B that lie together once packed
/// Of B, what is packed at once: with as much that is asked for meanwhile it fits the second cache.
constexpr int64_t kMostDepth = 384, kMostColumns = 192;
constexpr int64_t kMostRows = 1024;
/// Rows and multiplications from which on packing pays.
constexpr int64_t kFewestRows = 16, kLeastWork = 1 << 18;

int64_t ceiling(int64_t count, int64_t of_each) { return (count + of_each - 1) / of_each; }

/// Rows of B that are asked for line by line, beside arithmetic: the processor itself foresees single runs through memory.
struct LinesAhead {
  const float *at = nullptr, *row = nullptr;
  int64_t rows = 0, columns = 0, stride = 0;

  void start(const float* first, int64_t row_count, int64_t column_count, int64_t row_stride) {
    at = row = first;
    rows = row_count;
    columns = column_count;
    stride = row_stride;
  }

  ATTN_OPT_INLINE void ask() {
    constexpr int64_t kLine = 16;
    if (rows == 0) return;
    __builtin_prefetch(at, 0, 3);
    at += kLine;
    if (at < row + columns + kLine) return;
    at = row += stride;
    --rows;
  }
};

/// Columns of C, a job of one thread.
class ColumnPanel {
 public:
  ColumnPanel(const MatrixProduct& p, const float* a, const float* b, float* c, int64_t first_row, int64_t first_column)
      : p_(p),
        a_(a + first_row * row_stride()),
        b_(b),
        c_(c + first_row * p.n + first_column),
        rows_(std::min(kMostRows, p.m - first_row)),
        first_column_(first_column),
        columns_(std::min(kMostColumns, p.n - first_column)) {}

  ATTN_OPT_INLINE void compute() {
    thread_local AlignedBuffer<float> packed;
    const int64_t most = ceiling(p_.k, ceiling(p_.k, kMostDepth));
    strips_ = ceiling(columns_, kStrip);
    packed_ = packed.reserve(strips_ * kStrip * most);
    for (first_ = 0; first_ < p_.k; first_ += depth_) {
      depth_ = std::min(most, p_.k - first_);
      pack();
      look_ahead();
      all_tiles();
    }
  }

 private:
  int64_t row_stride() const { return p_.transpose_a ? 1 : p_.k; }

  ATTN_OPT_INLINE void pack() {
    if (!p_.transpose_b) {
      pack_tiles(b_ + first_ * p_.n + first_column_, p_.n, depth_, columns_, kStrip, packed_);
      return;
    }
    for (int64_t strip = 0; strip < strips_; ++strip) {
      const float* columns[kStrip];
      for (int64_t lane = 0; lane < kStrip; ++lane) {  // the last stands for those that are not there
        columns[lane] = b_ + (first_column_ + std::min(strip * kStrip + lane, columns_ - 1)) * p_.k + first_;
      }
      interleave(columns, kStrip, depth_, 1, packed_ + strip * kStrip * depth_);
    }
  }

  /// To the rows of B that are packed next.
  void look_ahead() {
    const bool is_last = first_ + depth_ >= p_.k;
    if (p_.transpose_b || (is_last && first_column_ + columns_ >= p_.n)) return;
    asked_.start(is_last ? b_ + first_column_ + columns_ : b_ + (first_ + depth_) * p_.n + first_column_,
                 std::min(depth_, is_last ? p_.k : p_.k - first_ - depth_), columns_, p_.n);
  }

  ATTN_OPT_INLINE void all_tiles() {
    int64_t row = 0;
    tiles_from<12>(row);
    tiles_from<8>(row);
    tiles_from<4>(row);
    tiles_from<2>(row);
    tiles_from<1>(row);
  }

  template <int kRows>
  ATTN_OPT_INLINE void tiles_from(int64_t& row) {
    for (; row + kRows <= rows_; row += kRows) {
      for (int64_t strip = 0; strip < strips_; ++strip) tile<kRows>(row, strip);
    }
  }

  template <int kRows>
  ATTN_OPT_INLINE void tile(int64_t row, int64_t strip) {
    using Vec = VectorOf<float, 64>::Vec;
    const int64_t depth_stride = p_.transpose_a ? p_.m : 1;
    RegisterSums<VectorOf<float, 64>, 2, kRows> sums;
    sums.multiply(depth_, a_ + row * row_stride() + first_ * depth_stride, row_stride(), depth_stride,
                  packed_ + strip * kStrip * depth_, [&]() __attribute__((always_inline)) { asked_.ask(); });
    const size_t bytes = static_cast<size_t>(std::min<int64_t>(kStrip, columns_ - strip * kStrip)) * sizeof(float);
    const float alpha = static_cast<float>(p_.alpha);
    const float beta = first_ == 0 ? static_cast<float>(p_.beta) : 1;
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      float* to = c_ + (row + i) * p_.n + strip * kStrip;
      Vec out[2] = {sums.at[i][0] * alpha, sums.at[i][1] * alpha};
      if (bytes == sizeof(out)) {
        store(out, to, beta, sizeof(out));
      } else {
        store(out, to, beta, bytes);
      }
    }
  }

  ATTN_OPT_INLINE static void store(VectorOf<float, 64>::Vec (&out)[2], float* to, float beta, size_t bytes) {
    if (beta != 0) {
      VectorOf<float, 64>::Vec before[2] = {};
      std::memcpy(before, to, bytes);
      out[0] += before[0] * beta;
      out[1] += before[1] * beta;
    }
    std::memcpy(to, out, bytes);
  }

  const MatrixProduct p_;
  const float *a_, *b_;
  float* c_;
  const int64_t rows_, first_column_, columns_;
  int64_t strips_ = 0, first_ = 0, depth_ = 0;  ///< of B in packed_: strips; the first of its rows and their count
  float* packed_ = nullptr;
  LinesAhead asked_;
};

int64_t panels_of(const MatrixProduct& p) { return ceiling(p.n, kMostColumns) * ceiling(p.m, kMostRows); }

ATTN_OPT_WIDE_VECTORS void compute_panel(const MatrixProduct& p, const float* a, const float* b, float* c, int64_t panel) {
  const int64_t across = ceiling(p.n, kMostColumns);
  ColumnPanel(p, a, b, c, panel / across * kMostRows, panel % across * kMostColumns).compute();
}

}  // namespace

bool is_for_wide_vectors(const MatrixProduct& p) {
  static const bool has = has_wide_vectors();
  const double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  return has && p.m >= kFewestRows && p.n >= kStrip / 2 && work >= static_cast<double>(kLeastWork);
}

void multiply_wide(const MatrixProduct& p, const float* a, const float* b, float* c) {
  for (int64_t job = 0; job < panels_of(p); ++job) compute_panel(p, a, b, c, job);
}

void multiply_wide(ThreadPool& pool, const MatrixProduct& p, const float* a, const float* b, float* c) {
  pool.parallel_for(panels_of(p), [&](int64_t panel) { compute_panel(p, a, b, c, panel); });
}

#endif

}  // namespace attn_opt
