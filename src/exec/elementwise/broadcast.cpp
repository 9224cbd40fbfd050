#include "src/exec/elementwise/broadcast.h"

#include "src/exec/dispatch.h"

namespace attn_opt {

Expected<Dims> broadcast_dims(const KernelContext& context, const Dims& a, const Dims& b) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims out = longer;
  const size_t shift = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& dim = out[shift + i];
    if (dim == 1)
      dim = shorter[i];
    else if (shorter[i] != 1 && shorter[i] != dim) {
      return context.invalid("shapes " + print_dims(a) + " and " + print_dims(b) + " do not broadcast");
    }
  }
  return out;
}

Dims broadcast_strides(const Dims& from, const Dims& to) {
  const Dims own = strides_of(from);
  Dims strides(to.size(), 0);
  const size_t shift = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) strides[shift + i] = from[i] == 1 ? 0 : own[i];
  return strides;
}

Expected<Tensor> expand(const KernelContext& context, const Tensor& tensor, const Dims& to) {
  if (tensor.dims() == to) return tensor;
  ATTN_OPT_TRY(Tensor out, context.allocate(tensor.type(), to));
  const StridedLoop<1> loop(to, {broadcast_strides(tensor.dims(), to)});
  return dispatch_cells(context, tensor.type(), [&]<class T>() -> Expected<Tensor> {
    const T* from = cells<T>(tensor);
    T* cell = mutable_cells<T>(out);
    loop.rows([&](const std::array<int64_t, 1>& at, int64_t count, const std::array<int64_t, 1>& step) {
      for (int64_t i = 0; i < count; ++i) *cell++ = from[at[0] + i * step[0]];
    });
    return std::move(out);
  });
}

Expected<Tensor> legacy_second_operand(const KernelContext& context) {
  const Tensor& a = context.input(0);
  const Tensor& b = context.input(1);
  if (context.version >= 7 || context.attribute("axis") == nullptr) return b;
  ATTN_OPT_TRY(const int64_t axis, context.axis(context.attribute_int("axis", 0), a.rank()));
  if (axis + b.rank() > a.rank()) return context.invalid("second input does not fit at its axis");
  Dims dims = b.dims();
  dims.resize(static_cast<size_t>(a.rank() - axis), 1);
  return b.reshaped(std::move(dims));
}

}  // namespace attn_opt
