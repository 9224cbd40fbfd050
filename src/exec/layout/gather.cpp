// Gather, GatherElements, GatherND.
#include "src/exec/families.h"
#include "src/exec/layout/copy.h"
#include "src/exec/layout/indices.h"

namespace attn_opt {
namespace {

Outputs gather(const KernelContext& context) {
  const Tensor& data = context.input(0);
  ATTN_OPT_TRY(const int64_t axis, context.axis(context.attribute_int("axis", 0), data.rank()));
  const size_t at = static_cast<size_t>(axis);
  ATTN_OPT_TRY(const auto indices, checked_indices(context, context.input(1), data.dims()[at]));
  Dims dims(data.dims().begin(), data.dims().begin() + axis);
  dims.insert(dims.end(), context.input(1).dims().begin(), context.input(1).dims().end());
  dims.insert(dims.end(), data.dims().begin() + axis + 1, data.dims().end());
  ATTN_OPT_TRY(Tensor out, context.allocate(data.type(), std::move(dims)));
  if (out.size() == 0) return single(std::move(out));
  const std::span<const int64_t> extents(data.dims());
  const int64_t inner = element_count(extents.subspan(at + 1));
  const int64_t outer = element_count(extents.first(at));
  return single(dispatch_cells(context, data.type(), [&]<class T>() -> Expected<Tensor> {
    T* to = mutable_cells<T>(out);
    for (int64_t o = 0; o < outer; ++o) {
      const T* block = cells<T>(data) + o * extents[at] * inner;
      for (const int64_t index : indices) to = std::copy_n(block + index * inner, inner, to);
    }
    return std::move(out);
  }));
}

Outputs gather_elements(const KernelContext& context) {
  const Tensor& data = context.input(0);
  const Tensor& index_tensor = context.input(1);
  ATTN_OPT_TRY(const ElementIndices elements, element_indices(context, data, index_tensor));
  ATTN_OPT_TRY(Tensor out, context.allocate(data.type(), index_tensor.dims()));
  return single(dispatch_cells(context, data.type(), [&]<class T>() -> Expected<Tensor> {
    const T* from = cells<T>(data);
    T* to = mutable_cells<T>(out);
    elements.each([&](int64_t i, int64_t at) { to[i] = from[at]; });
    return std::move(out);
  }));
}

Outputs gather_nd(const KernelContext& context) {
  const Tensor& data = context.input(0);
  const Tensor& index_tensor = context.input(1);
  const int64_t batch_dims = context.attribute_int("batch_dims", 0);
  ATTN_OPT_TRY(const BlockIndices blocks, block_indices(context, data, index_tensor, batch_dims));
  Dims dims(index_tensor.dims().begin(), index_tensor.dims().end() - 1);
  dims.insert(dims.end(), data.dims().begin() + batch_dims + index_tensor.dims().back(), data.dims().end());
  ATTN_OPT_TRY(Tensor out, context.allocate(data.type(), std::move(dims)));
  return single(dispatch_cells(context, data.type(), [&]<class T>() -> Expected<Tensor> {
    T* to = mutable_cells<T>(out);
    for (const int64_t offset : blocks.offsets) to = std::copy_n(cells<T>(data) + offset, blocks.length, to);
    return std::move(out);
  }));
}

}  // namespace

void register_gather(KernelRegistry& registry) {
  registry.add("Gather", 1, 13, gather);
  registry.add("GatherElements", 11, 13, gather_elements);
  registry.add("GatherND", 11, 13, gather_nd);
}

}  // namespace attn_opt
