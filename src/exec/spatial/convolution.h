// Convolutions as matrix products, shared by Conv, DeformConv and the integer convolutions.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "src/exec/reduction/matmul.h"
#include "src/exec/spatial/window.h"

namespace attn_opt {

/// Channels of a grouped convolution.
struct Groups {
  int64_t count = 1, in = 0, out = 0;  ///< in, out: channels of one group
};

/// Attribute group for input X of (N, C, spatial...) and WEIGHTS of (M, C / group, kernel...).
Expected<Groups> read_groups(const KernelContext& context, const Tensor& x, const Tensor& weights);

/// Input I, one value for each of CHANNELS, in the type that X's products are computed in; no value if
/// omitted.
Expected<Tensor> read_bias(const KernelContext& context, size_t i, const Tensor& x, int64_t channels);

/// The spatial axes of WEIGHTS, which attribute kernel_shape must repeat where there is one.
Expected<Dims> read_weights_kernel(const KernelContext& context, const Tensor& weights);

/// The window that WEIGHTS show of X.
Expected<Window> read_weights_window(const KernelContext& context, const Tensor& x, const Tensor& weights);

/// Conv of X, WEIGHTS and BIAS (may be without value), all of float or all of double.
Expected<Tensor> convolve(const KernelContext& context, const Tensor& x, const Tensor& weights, const Tensor& bias);

/// Y = weights * columns + bias, where fill(n, g, columns) makes the columns of group G of image N: one row
/// for each channel and kernel position, one column for each position of W.out. COLUMNS come zero-filled.
template <class T, class Fill>
Expected<Tensor> multiply_columns(const KernelContext& context, const Window& w, const Groups& groups, int64_t images,
                                  const Tensor& weights, const Tensor& bias, Fill&& fill) {
  const int64_t positions = element_count(w.out);
  const MatrixProduct product{groups.out, positions, groups.in * element_count(w.kernel), false, false, 1, 1};
  Dims dims{images, groups.out * groups.count};
  dims.insert(dims.end(), w.out.begin(), w.out.end());
  ATTN_OPT_TRY(Tensor out, context.allocate(weights.type(), std::move(dims)));
  ATTN_OPT_CHECK(check_extents(context, product));
  ATTN_OPT_CHECK(context.within_budget(element_count(std::array{product.k, positions}), sizeof(T)));
  if (out.size() == 0) return out;
  std::vector<T> columns(static_cast<size_t>(product.k * positions));
  T* to = out.mutable_data<T>().data();
  for (int64_t n = 0; n < images; ++n) {
    const T* kernel = weights.data<T>().data();
    for (int64_t g = 0; g < groups.count; ++g) {
      std::ranges::fill(columns, T{});
      fill(n, g, columns.data());
      for (int64_t m = 0; bias.has_value() && m < groups.out; ++m) {
        std::fill_n(to + m * positions, positions, bias.data<T>()[static_cast<size_t>(g * groups.out + m)]);
      }
      multiply(product, kernel, columns.data(), to);
      kernel += product.m * product.k;
      to += product.m * positions;
    }
  }
  return out;
}

}  // namespace attn_opt
