// Conv: the windows of a group become the columns of a matrix, which the weights multiply.
#include "src/exec/dispatch.h"
#include "src/exec/families.h"
#include "src/exec/reduction/columns.h"
#include "src/exec/spatial/convolution.h"

namespace attn_opt {

Expected<Groups> read_groups(const KernelContext& context, const Tensor& x, const Tensor& weights) {
  Groups groups;
  groups.count = context.attribute_int("group", 1);
  if (x.rank() < 3 || weights.rank() != x.rank() || groups.count < 1 || weights.dims()[0] % groups.count != 0 ||
      x.dims()[1] % groups.count != 0 || x.dims()[1] / groups.count != weights.dims()[1]) {
    return context.invalid("weights of shape " + print_dims(weights.dims()) + " do not fit input of shape " +
                           print_dims(x.dims()));
  }
  groups.in = weights.dims()[1];
  groups.out = weights.dims()[0] / groups.count;
  return groups;
}

Expected<Tensor> read_bias(const KernelContext& context, size_t i, const Tensor& x, int64_t channels) {
  const Tensor& bias = context.input(i);
  if (!bias.has_value()) return bias;
  ATTN_OPT_CHECK(context.same_type(x, bias));
  if (bias.size() != channels) return context.invalid("the bias is not one value for each output channel");
  return bias.cast(product_type(x.type()));
}

Expected<Dims> read_weights_kernel(const KernelContext& context, const Tensor& weights) {
  Dims kernel(weights.dims().begin() + 2, weights.dims().end());
  const Dims given = context.attribute_ints("kernel_shape");
  if (given.empty() || given == kernel) return kernel;
  return context.invalid("kernel_shape is " + print_dims(given) + " for weights of shape " + print_dims(weights.dims()));
}

Expected<Window> read_weights_window(const KernelContext& context, const Tensor& x, const Tensor& weights) {
  ATTN_OPT_TRY(Dims kernel, read_weights_kernel(context, weights));
  return read_window(context, x.dims(), std::move(kernel));
}

Expected<Tensor> convolve(const KernelContext& context, const Tensor& x, const Tensor& weights, const Tensor& bias) {
  ATTN_OPT_TRY(const Groups groups, read_groups(context, x, weights));
  ATTN_OPT_TRY(const Window w, read_weights_window(context, x, weights));
  const int64_t group_size = groups.in * element_count(w.in);
  return dispatch(context, x.type(), TypeList<float, double>{}, [&]<class T>() -> Expected<Tensor> {
    const T* images = x.data<T>().data();
    return multiply_columns<T>(context, w, groups, x.dims()[0], weights, bias, [&](int64_t n, int64_t g, T* columns) {
      const T* image = images + (n * groups.count + g) * group_size;
      fill_columns(w, image, groups.in, columns);
    });
  });
}

namespace {

Outputs conv(const KernelContext& context) {
  const DataType type = context.input(0).type();
  ATTN_OPT_CHECK(context.same_type(context.input(0), context.input(1)));
  ATTN_OPT_TRY(const Tensor x, context.input(0).cast(product_type(type)));
  ATTN_OPT_TRY(const Tensor weights, context.input(1).cast(product_type(type)));
  const int64_t channels = weights.rank() == 0 ? 0 : weights.dims()[0];
  ATTN_OPT_TRY(const Tensor bias, read_bias(context, 2, context.input(0), channels));
  ATTN_OPT_TRY(const Tensor out, convolve(context, x, weights, bias));
  return single(out.cast(type));
}

}  // namespace

void register_conv(KernelRegistry& registry) { registry.add("Conv", 1, 22, conv); }

}  // namespace attn_opt
