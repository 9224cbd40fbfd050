// ReverseSequence: the first elements along time, as many as a batch's sequence has, in reverse.
#include "src/exec/dispatch.h"
#include "src/exec/families.h"

namespace attn_opt {
namespace {

Outputs reverse_sequence(const KernelContext& context) {
  const Tensor& x = context.input(0);
  const int64_t batch_axis = context.attribute_int("batch_axis", 1);
  const int64_t time_axis = context.attribute_int("time_axis", 0);
  const bool axes_fit = (batch_axis == 0 && time_axis == 1) || (batch_axis == 1 && time_axis == 0);
  if (!axes_fit || x.rank() < 2) return context.invalid("batch_axis and time_axis are not 0 and 1");
  const bool time_first = time_axis == 0;
  const int64_t steps = x.dims()[time_first ? 0 : 1];
  const int64_t batch = x.dims()[time_first ? 1 : 0];
  ATTN_OPT_TRY(const auto lengths, context.integers(context.input(1)));
  const auto in_range = [&](int64_t length) { return length >= 0 && length <= steps; };
  if (static_cast<int64_t>(lengths.size()) != batch || !std::ranges::all_of(lengths, in_range)) {
    return context.invalid("sequence_lens are not a length of up to " + std::to_string(steps) + " for each sequence");
  }
  ATTN_OPT_TRY(Tensor out, context.allocate(x.type(), x.dims()));
  if (out.size() == 0) return single(std::move(out));
  const int64_t inner = x.size() / steps / batch;
  return single(dispatch_cells(context, x.type(), [&]<class T>() -> Expected<Tensor> {
    const auto row = [&](int64_t t, int64_t b) { return (time_first ? t * batch + b : b * steps + t) * inner; };
    const T* from = cells<T>(x);
    T* to = mutable_cells<T>(out);
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t length = lengths[static_cast<size_t>(b)];
      for (int64_t t = 0; t < steps; ++t) {
        std::copy_n(from + row(t < length ? length - 1 - t : t, b), inner, to + row(t, b));
      }
    }
    return std::move(out);
  }));
}

}  // namespace

void register_reverse_sequence(KernelRegistry& registry) { registry.add("ReverseSequence", 10, 28, reverse_sequence); }

}  // namespace attn_opt
