// Conv: the windows of a group become the columns of a matrix, which the weights multiply.
#include "src/exec/dispatch.h"
#include "src/exec/families.h"
#include "src/exec/matmul.h"
#include "src/exec/strided.h"
#include "src/exec/window.h"

namespace attn_opt {
namespace {

/// Row (c, k) of COLUMNS: what channel C shows under kernel position K for every output position.
template <class T>
void fill_row(const Window& w, const Dims& strides, const T* channel, const Dims& k, T* row) {
  const size_t last = w.rank() - 1;
  Dims leading(w.out.begin(), w.out.end() - 1);
  Dims at(last, 0);
  do {
    int64_t offset = 0;
    bool inside = true;
    for (size_t axis = 0; axis < last; ++axis) {
      const int64_t position = window_position(w, axis, at[axis], k[axis]);
      inside = inside && position >= 0 && position < w.in[axis];
      if (inside) offset += position * strides[axis];
    }
    for (int64_t i = 0; i < w.out[last]; ++i) {
      const int64_t position = window_position(w, last, i, k[last]);
      *row++ = inside && position >= 0 && position < w.in[last] ? channel[offset + position] : T{};
    }
  } while (next_index(at, leading));
}

template <class T>
void fill_columns(const Window& w, const T* image, int64_t channels, std::vector<T>& columns) {
  const Dims strides = strides_of(w.in);
  const int64_t channel_size = element_count(w.in);
  const int64_t positions = element_count(w.out);
  T* row = columns.data();
  for (int64_t c = 0; c < channels; ++c) {
    Dims k(w.rank(), 0);
    do {
      fill_row(w, strides, image + c * channel_size, k, row);
      row += positions;
    } while (next_index(k, w.kernel));
  }
}

/// Channels of a grouped convolution.
struct Groups {
  int64_t count = 1, in = 0, out = 0;  ///< in, out: channels of one group
};

Expected<Groups> read_groups(const KernelContext& context, const Tensor& x, const Tensor& weights) {
  Groups groups;
  groups.count = context.attribute_int("group", 1);
  if (x.rank() < 3 || weights.rank() != x.rank() || groups.count < 1 ||
      weights.dims()[0] % groups.count != 0 || x.dims()[1] % groups.count != 0 ||
      x.dims()[1] / groups.count != weights.dims()[1]) {
    return context.invalid("weights of shape " + print_dims(weights.dims()) + " do not fit input of shape " +
                           print_dims(x.dims()));
  }
  groups.in = weights.dims()[1];
  groups.out = weights.dims()[0] / groups.count;
  return groups;
}

template <class T>
Expected<Tensor> convolve(const KernelContext& context, const Window& w, const Groups& groups,
                          const Tensor& x, const Tensor& weights, const Tensor& bias) {
  const int64_t positions = element_count(w.out);
  const MatrixProduct product{groups.out, positions, groups.in * element_count(w.kernel), false, false, 1, 1};
  Dims dims{x.dims()[0], groups.out * groups.count};
  dims.insert(dims.end(), w.out.begin(), w.out.end());
  ATTN_OPT_TRY(Tensor out, context.allocate(x.type(), std::move(dims)));
  ATTN_OPT_CHECK(check_extents(context, product));
  ATTN_OPT_CHECK(context.within_budget(element_count(std::array{product.k, positions}), sizeof(T)));
  if (out.size() == 0) return out;
  std::vector<T> columns(static_cast<size_t>(product.k * positions));
  const T* image = x.data<T>().data();
  T* to = out.mutable_data<T>().data();
  for (int64_t n = 0; n < x.dims()[0]; ++n) {
    const T* kernel = weights.data<T>().data();
    for (int64_t g = 0; g < groups.count; ++g) {
      fill_columns(w, image, groups.in, columns);
      for (int64_t m = 0; bias.has_value() && m < groups.out; ++m) {
        std::fill_n(to + m * positions, positions, bias.data<T>()[static_cast<size_t>(g * groups.out + m)]);
      }
      multiply(product, kernel, columns.data(), to);
      image += groups.in * element_count(w.in);
      kernel += product.m * product.k;
      to += product.m * positions;
    }
  }
  return out;
}

Outputs conv(const KernelContext& context) {
  const DataType type = context.input(0).type();
  ATTN_OPT_CHECK(context.same_type(context.input(0), context.input(1)));
  ATTN_OPT_TRY(const Tensor x, context.input(0).cast(product_type(type)));
  ATTN_OPT_TRY(const Tensor weights, context.input(1).cast(product_type(type)));
  ATTN_OPT_TRY(const Groups groups, read_groups(context, x, weights));
  ATTN_OPT_TRY(const Window window,
               read_window(context, x.dims(), Dims(weights.dims().begin() + 2, weights.dims().end())));
  Tensor bias;
  if (context.has(2)) {
    ATTN_OPT_CHECK(context.same_type(context.input(0), context.input(2)));
    ATTN_OPT_TRY(bias, context.input(2).cast(x.type()));
    if (bias.size() != weights.dims()[0]) {
      return context.invalid("the bias is not one value for each output channel");
    }
  }
  return dispatch(context, x.type(), TypeList<float, double>{}, [&]<class T>() -> Outputs {
    ATTN_OPT_TRY(const Tensor out, convolve<T>(context, window, groups, x, weights, bias));
    return single(out.cast(type));
  });
}

}  // namespace

void register_conv(KernelRegistry& registry) { registry.add("Conv", 1, 22, conv); }

}  // namespace attn_opt
