// ConvTranspose: weights times input are the columns of windows over the output, which are added up where
// they overlap. Col2Im is given such columns.
#include "src/exec/dispatch.h"
#include "src/exec/families.h"
#include "src/exec/reduction/columns.h"
#include "src/exec/spatial/convolution.h"

namespace attn_opt {
namespace {

/// The values of attribute NAME, one an axis and none negative; OTHERWISE without it.
Expected<Dims> extents(const KernelContext& context, const char* name, size_t rank, Dims otherwise) {
  Dims values = context.attribute_ints(name);
  if (values.empty()) return otherwise;
  // Before opset 11 nothing said that batch and channels are not among them.
  if (context.version < 11 && values.size() == rank + 2) values.erase(values.begin(), values.begin() + 2);
  const auto in_range = [](int64_t value) { return value >= 0 && value <= kMostExtent; };
  if (values.size() != rank || !std::ranges::all_of(values, in_range)) {
    return context.invalid(std::string("attribute ") + name + " is not an extent for each spatial axis");
  }
  return values;
}

/// The window over the output: w.in is the output, w.out the input of spatial shape X.
Expected<Window> read_transposed_window(const KernelContext& context, const Dims& x, Dims kernel) {
  ATTN_OPT_TRY(Window w, read_kernel(context, std::move(kernel)));
  const size_t rank = x.size();
  const std::string auto_pad = context.attribute_string("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  ATTN_OPT_TRY(const Dims pads, read_pads(context, rank));
  ATTN_OPT_TRY(const Dims added, extents(context, "output_padding", rank, Dims(rank, 0)));
  ATTN_OPT_TRY(const Dims given, extents(context, "output_shape", rank, {}));
  w.out = x;
  for (size_t axis = 0; axis < rank; ++axis) {
    if (x[axis] > kMostExtent) return context.invalid("input is out of range");
    const int64_t full = w.strides[axis] * (x[axis] - 1) + added[axis] + (w.kernel[axis] - 1) * w.dilations[axis] + 1;
    int64_t before = auto_pad == "NOTSET" ? pads[axis] : 0;
    int64_t out = full - before - (auto_pad == "NOTSET" ? pads[rank + axis] : 0);
    if (same || !given.empty()) {
      out = given.empty() ? x[axis] * w.strides[axis] : given[axis];
      const int64_t total = std::max<int64_t>(0, full - out);  // pads are never negative
      before = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    }
    if (out < 0 || out > kMostExtent) return context.invalid("the output's shape is out of range");
    w.pads_before.push_back(before);
    w.in.push_back(out);
  }
  return w;
}

/// A group's channels in X and in the output.
Expected<Groups> read_transposed_groups(const KernelContext& context, const Tensor& x, const Tensor& weights) {
  Groups groups;
  groups.count = context.attribute_int("group", 1);
  if (x.rank() < 3 || weights.rank() != x.rank() || groups.count < 1 || x.dims()[1] != weights.dims()[0] ||
      x.dims()[1] % groups.count != 0) {
    return context.invalid("weights of shape " + print_dims(weights.dims()) + " do not fit input of shape " +
                           print_dims(x.dims()));
  }
  groups.in = x.dims()[1] / groups.count;
  groups.out = weights.dims()[1];
  if (element_count(std::array{groups.out, groups.count}) < 0) return context.invalid("too many groups");
  return groups;
}

template <class T>
Expected<Tensor> convolve_transposed(const KernelContext& context, const Window& w, const Groups& groups, const Tensor& x,
                                     const Tensor& weights, const Tensor& bias) {
  const MatrixProduct product{groups.out * element_count(w.kernel), element_count(w.out), groups.in, true};
  Dims dims{x.dims()[0], groups.out * groups.count};
  dims.insert(dims.end(), w.in.begin(), w.in.end());
  ATTN_OPT_TRY(Tensor out, context.allocate(x.type(), std::move(dims)));
  ATTN_OPT_CHECK(check_extents(context, product));
  ATTN_OPT_CHECK(context.within_budget(element_count(std::array{product.m, product.n}), sizeof(T)));
  if (out.size() == 0) return out;
  std::vector<T> columns(static_cast<size_t>(product.m * product.n));
  const int64_t channel_size = element_count(w.in);
  const T* from = x.data<T>().data();
  T* to = out.mutable_data<T>().data();
  for (int64_t n = 0; n < x.dims()[0]; ++n) {
    for (int64_t g = 0; g < groups.count; ++g) {
      for (int64_t m = 0; bias.has_value() && m < groups.out; ++m) {
        std::fill_n(to + m * channel_size, channel_size, bias.data<T>()[static_cast<size_t>(g * groups.out + m)]);
      }
      multiply(product, weights.data<T>().data() + g * product.k * product.m, from, columns.data());
      if (!columns.empty()) add_columns(w, columns.data(), groups.out, to);
      from += product.k * product.n;
      to += groups.out * channel_size;
    }
  }
  return out;
}

Outputs conv_transpose(const KernelContext& context) {
  const DataType type = context.input(0).type();
  ATTN_OPT_CHECK(context.same_type(context.input(0), context.input(1)));
  ATTN_OPT_TRY(const Tensor x, context.input(0).cast(product_type(type)));
  ATTN_OPT_TRY(const Tensor weights, context.input(1).cast(product_type(type)));
  ATTN_OPT_TRY(const Groups groups, read_transposed_groups(context, x, weights));
  ATTN_OPT_TRY(Dims kernel, read_weights_kernel(context, weights));
  ATTN_OPT_TRY(const Window w, read_transposed_window(context, Dims(x.dims().begin() + 2, x.dims().end()), std::move(kernel)));
  ATTN_OPT_TRY(const Tensor bias, read_bias(context, 2, context.input(0), groups.out * groups.count));
  return dispatch(context, x.type(), TypeList<float, double>{}, [&]<class T>() -> Outputs {
    ATTN_OPT_TRY(const Tensor out, convolve_transposed<T>(context, w, groups, x, weights, bias));
    return single(out.cast(type));
  });
}

Outputs col2im(const KernelContext& context) {
  const DataType type = context.input(0).type();
  ATTN_OPT_TRY(const Tensor columns, context.input(0).cast(product_type(type)));
  ATTN_OPT_TRY(Dims image, context.integers(context.input(1)));
  ATTN_OPT_TRY(Dims block, context.integers(context.input(2)));
  image.insert(image.begin(), {1, 1});
  ATTN_OPT_TRY(const Window w, read_window(context, image, block));
  const int64_t block_size = element_count(w.kernel);
  if (columns.rank() != 3 || block_size < 1 || columns.dims()[1] % block_size != 0 ||
      columns.dims()[2] != element_count(w.out)) {
    return context.invalid("columns of shape " + print_dims(columns.dims()) + " do not fit blocks of " + print_dims(w.kernel) +
                           " in an image of " + print_dims(w.in));
  }
  const int64_t channels = columns.dims()[1] / block_size;
  Dims dims{columns.dims()[0], channels};
  dims.insert(dims.end(), w.in.begin(), w.in.end());
  ATTN_OPT_TRY(Tensor out, context.allocate(columns.type(), std::move(dims)));
  if (out.size() == 0 || columns.size() == 0) return single(out.cast(type));
  using Types = decltype(join(TypeList<float, double>{}, IntegerTypes{}));
  return dispatch(context, columns.type(), Types{}, [&]<class T>() -> Outputs {
    add_columns(w, columns.data<T>().data(), columns.dims()[0] * channels, out.mutable_data<T>().data());
    return single(out.cast(type));
  });
}

}  // namespace

void register_conv_transpose(KernelRegistry& registry) {
  registry.add("ConvTranspose", 1, 22, conv_transpose);
  registry.add("Col2Im", 18, 18, col2im);
}

}  // namespace attn_opt
