// Operators whose output shape depends on data: NonZero, Compress, Unique.
#include <numeric>

#include "src/exec/families.h"
#include "src/exec/layout/copy.h"
#include "src/exec/layout/order.h"

namespace attn_opt {
namespace {

Outputs non_zero(const KernelContext& context) {
  ATTN_OPT_TRY(const Tensor set, context.input(0).cast(onnx::TensorProto::BOOL));
  const Dims dims = set.rank() == 0 ? Dims{1} : set.dims();
  const Dims strides = strides_of(dims);
  const auto flags = set.data<bool>();
  const int64_t count = std::ranges::count(flags, true);
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::INT64, {static_cast<int64_t>(dims.size()), count}));
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
  const int64_t extent = x.dims()[static_cast<size_t>(axis)];
  std::vector<int64_t> chosen;
  for (size_t i = 0; i < flags.size(); ++i) {
    if (!flags[i]) continue;
    if (static_cast<int64_t>(i) >= extent) return context.invalid("condition selects beyond the axis");
    chosen.push_back(static_cast<int64_t>(i));
  }
  return single(slices_at(context, x, axis, chosen));
}

/// Which slices along an axis are the first of their kind.
struct DistinctSlices {
  std::vector<int64_t> first;   ///< in ascending order of contents, or of place
  std::vector<int64_t> kind;    ///< for each slice, its place in `first`
  std::vector<int64_t> counts;  ///< for each of `first`, how many slices are like it
};

/// ORDERED: all slices in ascending order of contents, like ones in order of place; same(a, b): a and b are
/// like.
template <class Same>
DistinctSlices distinct_slices(const std::vector<int64_t>& ordered, bool sorted, Same&& same) {
  std::vector<int64_t> representative(ordered.size());
  DistinctSlices distinct;
  for (size_t i = 0; i < ordered.size(); ++i) {
    if (i == 0 || !same(ordered[i - 1], ordered[i])) distinct.first.push_back(ordered[i]);
    representative[static_cast<size_t>(ordered[i])] = distinct.first.back();
  }
  if (!sorted) std::ranges::sort(distinct.first);
  std::vector<int64_t> place(ordered.size());
  for (size_t i = 0; i < distinct.first.size(); ++i) {
    place[static_cast<size_t>(distinct.first[i])] = static_cast<int64_t>(i);
  }
  distinct.counts.resize(distinct.first.size());
  for (const int64_t slice : representative) {
    distinct.kind.push_back(place[static_cast<size_t>(slice)]);
    ++distinct.counts[static_cast<size_t>(distinct.kind.back())];
  }
  return distinct;
}

Outputs unique(const KernelContext& context) {
  const bool flat = context.attribute("axis") == nullptr;
  const Tensor x = flat ? context.input(0).reshaped({context.input(0).size()}) : context.input(0);
  ATTN_OPT_TRY(const int64_t axis, context.axis(context.attribute_int("axis", 0), x.rank()));
  const auto dims = std::span(x.dims());
  const int64_t extent = dims[static_cast<size_t>(axis)];
  const int64_t inner = element_count(dims.subspan(static_cast<size_t>(axis) + 1));
  const int64_t outer = element_count(dims.first(static_cast<size_t>(axis)));
  ATTN_OPT_CHECK(context.within_budget(extent, 8 * sizeof(int64_t)));
  return dispatch(context, x.type(), AllTypes{}, [&]<class T>() -> Outputs {
    const T* data = x.data<T>().data();
    const auto compare = [&](int64_t a, int64_t b) -> std::weak_ordering {
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t i = o * extent * inner; i < (o * extent + 1) * inner; ++i) {
          if (const auto found = order<T>(data[i + a * inner], data[i + b * inner]); found != 0) return found;
        }
      }
      return std::weak_ordering::equivalent;
    };
    std::vector<int64_t> ordered(static_cast<size_t>(extent));
    std::iota(ordered.begin(), ordered.end(), 0);
    std::ranges::stable_sort(ordered, [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
    const bool sorted = context.attribute_int("sorted", 1) != 0;
    const DistinctSlices distinct = distinct_slices(ordered, sorted, [&](int64_t a, int64_t b) { return compare(a, b) == 0; });
    ATTN_OPT_TRY(Tensor values, slices_at(context, x, axis, distinct.first));
    std::vector<Tensor> outputs{std::move(values)};
    for (const auto* list : {&distinct.first, &distinct.kind, &distinct.counts}) {
      outputs.push_back(Tensor::of<int64_t>({static_cast<int64_t>(list->size())}, *list));
    }
    return outputs;
  });
}

}  // namespace

void register_selection(KernelRegistry& registry) {
  registry.add("NonZero", 9, 13, non_zero);
  registry.add("Compress", 9, 28, compress);
  registry.add("Unique", 11, 28, unique);
}

}  // namespace attn_opt
