// Operators whose output shape depends on data: NonZero, Compress.
#include "src/exec/copy.h"
#include "src/exec/families.h"

namespace attn_opt {
namespace {

Outputs non_zero(const KernelContext& context) {
  ATTN_OPT_TRY(const Tensor set, context.input(0).cast(onnx::TensorProto::BOOL));
  const Dims dims = set.rank() == 0 ? Dims{1} : set.dims();
  const Dims strides = strides_of(dims);
  const auto flags = set.data<bool>();
  const int64_t count = std::ranges::count(flags, true);
  ATTN_OPT_TRY(Tensor out,
               context.allocate(onnx::TensorProto::INT64, {static_cast<int64_t>(dims.size()), count}));
  const auto to = out.mutable_data<int64_t>();
  size_t found = 0;
  for (size_t i = 0; i < flags.size(); ++i) {
    if (!flags[i]) continue;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      to[axis * static_cast<size_t>(count) + found] = static_cast<int64_t>(i) / strides[axis] % dims[axis];
    }
    ++found;
  }
  return single(std::move(out));
}

Outputs compress(const KernelContext& context) {
  const Tensor& condition = context.input(1);
  if (condition.type() != onnx::TensorProto::BOOL || condition.rank() != 1) {
    return context.invalid("condition is not a bool vector");
  }
  const auto flags = condition.data<bool>();
  const bool flat = context.attribute("axis") == nullptr;
  const Tensor x = flat ? context.input(0).reshaped({context.input(0).size()}) : context.input(0);
  ATTN_OPT_TRY(const int64_t axis, context.axis(context.attribute_int("axis", 0), x.rank()));
  const std::span<const int64_t> extents(x.dims());
  const size_t at = static_cast<size_t>(axis);
  std::vector<int64_t> chosen;
  for (size_t i = 0; i < flags.size(); ++i) {
    if (!flags[i]) continue;
    if (static_cast<int64_t>(i) >= extents[at]) return context.invalid("condition selects beyond the axis");
    chosen.push_back(static_cast<int64_t>(i));
  }
  Dims dims = x.dims();
  dims[at] = static_cast<int64_t>(chosen.size());
  ATTN_OPT_TRY(Tensor out, context.allocate(x.type(), std::move(dims)));
  const int64_t inner = element_count(extents.subspan(at + 1));
  const int64_t outer = element_count(extents.first(at));
  return single(dispatch_cells(context, x.type(), [&]<class T>() -> Expected<Tensor> {
    T* to = mutable_cells<T>(out);
    for (int64_t o = 0; o < outer; ++o) {
      for (const int64_t i : chosen) to = std::copy_n(cells<T>(x) + (o * extents[at] + i) * inner, inner, to);
    }
    return std::move(out);
  }));
}

}  // namespace

void register_selection(KernelRegistry& registry) {
  registry.add("NonZero", 9, 13, non_zero);
  registry.add("Compress", 9, 28, compress);
}

}  // namespace attn_opt
