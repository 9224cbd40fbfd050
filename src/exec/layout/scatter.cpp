// ScatterElements, ScatterND, TensorScatter.
#include <cstring>

#include "src/exec/families.h"
#include "src/exec/layout/copy.h"
#include "src/exec/layout/indices.h"

namespace attn_opt {
namespace {

enum class Combination { kReplace, kAdd, kMultiply, kMax, kMin };

Expected<Combination> combination(const KernelContext& context) {
  const std::string name = context.attribute_string("reduction", "none");
  if (name == "none") return Combination::kReplace;
  if (name == "add") return Combination::kAdd;
  if (name == "mul") return Combination::kMultiply;
  if (name == "max") return Combination::kMax;
  if (name == "min") return Combination::kMin;
  return context.invalid("attribute reduction is " + name);
}

Expected<Tensor> copy_of(const KernelContext& context, const Tensor& tensor) {
  ATTN_OPT_TRY(Tensor copy, context.allocate(tensor.type(), tensor.dims()));
  if (tensor.type() == onnx::TensorProto::STRING) {
    std::ranges::copy(tensor.data<std::string>(), copy.mutable_data<std::string>().begin());
  } else if (tensor.size() != 0) {
    std::memcpy(copy.mutable_bytes().data(), tensor.bytes().data(), tensor.bytes().size());
  }
  return copy;
}

template <class T>
T combined(Combination how, T held_value, T given_value) {
  const auto held = static_cast<Compute<T>>(held_value);
  const auto given = static_cast<Compute<T>>(given_value);
  switch (how) {
    case Combination::kAdd: return round_to<T>(held + given);
    case Combination::kMultiply: return round_to<T>(held * given);
    case Combination::kMax: return held < given || given != given ? given_value : held_value;
    case Combination::kMin: return given < held || given != given ? given_value : held_value;
    case Combination::kReplace: break;
  }
  return given_value;
}

/// DATA with element OFFSET of pair (i, OFFSET) combined with UPDATES[i]; PAIRS calls its argument for each
/// pair.
template <class Pairs>
Outputs scatter(const KernelContext& context, const Tensor& data, const Tensor& updates, Pairs&& pairs) {
  ATTN_OPT_CHECK(context.same_type(data, updates));
  ATTN_OPT_TRY(const Combination how, combination(context));
  ATTN_OPT_TRY(Tensor out, copy_of(context, data));
  if (how == Combination::kReplace) {
    return single(dispatch_cells(context, data.type(), [&]<class T>() -> Expected<Tensor> {
      const T* from = cells<T>(updates);
      T* to = mutable_cells<T>(out);
      pairs([&](int64_t i, int64_t at) { to[at] = from[i]; });
      return std::move(out);
    }));
  }
  return single(dispatch(context, data.type(), NumericTypes{}, [&]<class T>() -> Expected<Tensor> {
    const auto from = updates.data<T>();
    const auto to = out.mutable_data<T>();
    pairs([&](int64_t i, int64_t at) {
      T& held = to[static_cast<size_t>(at)];
      held = combined(how, held, from[static_cast<size_t>(i)]);
    });
    return std::move(out);
  }));
}

Outputs scatter_elements(const KernelContext& context) {
  const Tensor& updates = context.input(2);
  ATTN_OPT_TRY(const ElementIndices elements, element_indices(context, context.input(0), context.input(1)));
  if (updates.dims() != elements.dims) return context.invalid("updates and indices differ in shape");
  return scatter(context, context.input(0), updates, [&](auto&& write) { elements.each(write); });
}

Outputs scatter_nd(const KernelContext& context) {
  const Tensor& updates = context.input(2);
  ATTN_OPT_TRY(const BlockIndices blocks, block_indices(context, context.input(0), context.input(1), 0));
  if (updates.size() != static_cast<int64_t>(blocks.offsets.size()) * blocks.length) {
    return context.invalid("updates of shape " + print_dims(updates.dims()) + " do not fit the indices");
  }
  return scatter(context, context.input(0), updates, [&](auto&& write) {
    int64_t i = 0;
    for (const int64_t offset : blocks.offsets) {
      for (int64_t k = 0; k < blocks.length; ++k) write(i++, offset + k);
    }
  });
}

/// Writes updates into a cache from each batch entry's own position on: past the end it wraps around when
/// circular.
Outputs tensor_scatter(const KernelContext& context) {
  const Tensor& cache = context.input(0);
  const Tensor& updates = context.input(1);
  ATTN_OPT_TRY(const int64_t axis, context.axis(context.attribute_int("axis", -2), cache.rank()));
  const size_t at = static_cast<size_t>(axis);
  bool fits = axis > 0 && updates.rank() == cache.rank();
  for (size_t i = 0; fits && i < cache.dims().size(); ++i) {
    fits = i == at ? updates.dims()[i] <= cache.dims()[i] : updates.dims()[i] == cache.dims()[i];
  }
  if (!fits) {
    return context.invalid("updates of shape " + print_dims(updates.dims()) + " do not fit " + print_dims(cache.dims()));
  }
  const int64_t batches = cache.dims()[0];
  std::vector<int64_t> starts(static_cast<size_t>(batches), 0);
  if (context.has(2)) {
    ATTN_OPT_TRY(starts, context.integers(context.input(2)));
  }
  if (static_cast<int64_t>(starts.size()) != batches) {
    return context.invalid("write_indices are not one for each batch entry");
  }
  const std::string mode = context.attribute_string("mode", "linear");
  const bool circular = mode == "circular";
  const int64_t extent = cache.dims()[at];
  const int64_t written = updates.dims()[at];
  for (const int64_t start : starts) {
    if (start < 0 || (circular ? start >= extent : start > extent - written)) {
      return context.invalid("write index " + std::to_string(start) + " is out of range");
    }
  }
  const std::span<const int64_t> dims(cache.dims());
  const int64_t inner = element_count(dims.subspan(at + 1));
  const int64_t outer = element_count(dims.first(at));
  return scatter(context, cache, updates, [&](auto&& write) {
    for (int64_t o = 0; o < outer; ++o) {
      const int64_t start = starts[static_cast<size_t>(o / (outer / batches))];
      for (int64_t k = 0; k < written; ++k) {
        const int64_t row = o * extent + (start + k) % extent;
        for (int64_t i = 0; i < inner; ++i) write((o * written + k) * inner + i, row * inner + i);
      }
    }
  });
}

}  // namespace

void register_scatter(KernelRegistry& registry) {
  registry.add("Scatter", 9, 11, scatter_elements);
  registry.add("ScatterElements", 11, 18, scatter_elements);
  registry.add("ScatterND", 11, 18, scatter_nd);
  registry.add("TensorScatter", 24, 24, tensor_scatter);
}

}  // namespace attn_opt
