// MaxPool, AveragePool and their global forms.
#include <cmath>
#include <limits>

#include "src/exec/dispatch.h"
#include "src/exec/families.h"
#include "src/exec/layout/strided.h"
#include "src/exec/spatial/window.h"

namespace attn_opt {
namespace {

Outputs average_pool(const KernelContext& context) {
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(const Window w, read_window(context, x.dims(), context.attribute_ints("kernel_shape")));
  const bool count_pads = context.attribute_int("count_include_pad", 0) != 0;
  ATTN_OPT_TRY(Tensor out, context.allocate(x.type(), output_dims(x.dims(), w)));
  if (out.size() == 0) return single(std::move(out));
  WindowWalk walk(w, strides_of(w.in));
  const int64_t channel = element_count(w.in);
  return single(dispatch(context, x.type(), FloatTypes{}, [&]<class T>() -> Expected<Tensor> {
    const T* from = x.data<T>().data();
    T* to = out.mutable_data<T>().data();
    for (int64_t c = 0; c < x.dims()[0] * x.dims()[1]; ++c, from += channel) {
      Dims at(w.rank(), 0);
      do {
        double sum = 0;
        int64_t inside = 0;
        const double padded = walk.visit(at, [&](int64_t offset) {
          sum += static_cast<double>(static_cast<Compute<T>>(from[offset]));
          ++inside;
        });
        *to++ = round_to<T>(static_cast<Compute<T>>(sum / (count_pads ? padded : static_cast<double>(inside))));
      } while (next_index(at, w.out));
    }
    return std::move(out);
  }));
}

/// Offset within a channel as MaxPool's second output counts it: storage order 1 is column-major.
int64_t reported_index(int64_t offset, const Dims& in, bool column_major) {
  if (!column_major) return offset;
  int64_t index = 0;
  int64_t rest = offset;
  Dims position(in.size());
  for (size_t axis = in.size(); axis-- > 0;) {
    position[axis] = rest % in[axis];
    rest /= in[axis];
  }
  for (size_t axis = in.size(); axis-- > 0;) index = index * in[axis] + position[axis];
  return index;
}

/// What a window that shows nothing but padding gives.
template <class T>
T least() {
  if constexpr (kIsFloat<T>)
    return round_to<T>(-std::numeric_limits<Compute<T>>::infinity());
  else
    return std::numeric_limits<T>::lowest();
}

template <class T>
void max_pool_into(const Tensor& x, const Window& w, bool column_major, Tensor& out, Tensor& indices) {
  WindowWalk walk(w, strides_of(w.in));
  const int64_t channel = element_count(w.in);
  const T* from = x.data<T>().data();
  T* to = out.mutable_data<T>().data();
  int64_t* index = indices.has_value() ? indices.mutable_data<int64_t>().data() : nullptr;
  for (int64_t c = 0; c < x.dims()[0] * x.dims()[1]; ++c) {
    Dims at(w.rank(), 0);
    do {
      int64_t best = -1;
      walk.visit(at, [&](int64_t offset) {
        if (best < 0) {
          best = offset;
          return;
        }
        const auto value = static_cast<Compute<T>>(from[c * channel + offset]);
        const auto held = static_cast<Compute<T>>(from[c * channel + best]);
        if (value > held || (value != value && held == held)) best = offset;
      });
      *to++ = best < 0 ? least<T>() : from[c * channel + best];
      if (index != nullptr) {
        *index++ = c * channel + reported_index(std::max<int64_t>(best, 0), w.in, column_major);
      }
    } while (next_index(at, w.out));
  }
}

Outputs max_pool(const KernelContext& context) {
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(const Window w, read_window(context, x.dims(), context.attribute_ints("kernel_shape")));
  ATTN_OPT_TRY(Tensor out, context.allocate(x.type(), output_dims(x.dims(), w)));
  Tensor indices;
  if (context.wants(1)) {
    ATTN_OPT_TRY(indices, context.allocate(onnx::TensorProto::INT64, out.dims()));
  }
  const bool column_major = context.attribute_int("storage_order", 0) != 0;
  return dispatch(context, x.type(), NumericTypes{}, [&]<class T>() -> Outputs {
    if (out.size() != 0) max_pool_into<T>(x, w, column_major, out, indices);
    std::vector<Tensor> outputs{std::move(out)};
    if (indices.has_value()) outputs.push_back(std::move(indices));
    return outputs;
  });
}

template <bool kMax>
Outputs global_pool(const KernelContext& context) {
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(Tensor out, allocate_per_channel(context));
  const int64_t count = element_count(std::span(x.dims()).subspan(2));
  if (count == 0) return context.invalid("nothing to pool");
  return single(dispatch(context, x.type(), FloatTypes{}, [&]<class T>() -> Expected<Tensor> {
    const T* from = x.data<T>().data();
    for (T& to : out.mutable_data<T>()) {
      double sum = 0;
      double most = -std::numeric_limits<double>::infinity();
      for (int64_t i = 0; i < count; ++i) {
        const double value = static_cast<double>(static_cast<Compute<T>>(*from++));
        sum += value;
        if (value > most || std::isnan(value)) most = value;
      }
      to = round_to<T>(kMax ? most : sum / static_cast<double>(count));
    }
    return std::move(out);
  }));
}

}  // namespace

void register_pool(KernelRegistry& registry) {
  registry.add("AveragePool", 1, 22, average_pool);
  registry.add("MaxPool", 1, 22, max_pool);
  registry.add("GlobalAveragePool", 1, 22, global_pool<false>);
  registry.add("GlobalMaxPool", 1, 22, global_pool<true>);
}

}  // namespace attn_opt
