// LRN: each element is divided by a power of the squares' sum over neighbouring channels.
#include <cmath>

#include "src/exec/dispatch.h"
#include "src/exec/families.h"

namespace attn_opt {
namespace {

Outputs lrn(const KernelContext& context) {
  const Tensor& x = context.input(0);
  const int64_t size = context.attribute_int("size", 0);
  if (size < 1) return context.invalid("size is not positive");
  if (x.rank() < 2) return context.invalid("input of shape " + print_dims(x.dims()) + " has no channels");
  const double scale = static_cast<double>(context.attribute_float("alpha", 0.0001f)) / static_cast<double>(size);
  const double beta = context.attribute_float("beta", 0.75f);
  const double bias = context.attribute_float("bias", 1);
  ATTN_OPT_TRY(Tensor out, context.allocate(x.type(), x.dims()));
  if (out.size() == 0) return single(std::move(out));
  const int64_t channels = x.dims()[1];
  const int64_t inner = element_count(std::span(x.dims()).subspan(2));
  const int64_t before = std::min((size - 1) / 2, channels);  // floor((size - 1) / 2)
  const int64_t behind = std::min(size / 2, channels);        // ceil((size - 1) / 2)
  return single(dispatch(context, x.type(), FloatTypes{}, [&]<class T>() -> Expected<Tensor> {
    const auto value = [&](int64_t at) {
      return static_cast<double>(static_cast<Compute<T>>(x.data<T>()[static_cast<size_t>(at)]));
    };
    for (int64_t at = 0; at < x.size(); ++at) {
      const int64_t channel = at / inner % channels;
      const int64_t last = std::min(channel + behind, channels - 1);
      double squares = 0;
      for (int64_t c = std::max<int64_t>(0, channel - before); c <= last; ++c) {
        const double neighbour = value(at + (c - channel) * inner);
        squares += neighbour * neighbour;
      }
      out.mutable_data<T>()[static_cast<size_t>(at)] = round_to<T>(value(at) / std::pow(bias + scale * squares, beta));
    }
    return std::move(out);
  }));
}

}  // namespace

void register_lrn(KernelRegistry& registry) { registry.add("LRN", 1, 13, lrn); }

}  // namespace attn_opt
