// BatchNormalization, InstanceNormalization.
#include <algorithm>
#include <cmath>

#include "src/exec/dispatch.h"
#include "src/exec/families.h"
#include "src/exec/reduction/moments.h"

namespace attn_opt {
namespace {

/// The COUNT values of input I, which must be floating.
Expected<std::vector<double>> channel_values(const KernelContext& context, size_t i, int64_t count) {
  ATTN_OPT_TRY(auto values, context.reals(context.input(i)));
  if (static_cast<int64_t>(values.size()) != count) {
    return context.invalid("input " + std::to_string(i) + " is not one value for each channel");
  }
  return values;
}

/// f(channel, x) of every element of input 0, of shape (N, C, ...); a vector is one channel's.
template <class F>
Outputs map_channels(const KernelContext& context, int64_t channels, F&& f) {
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(Tensor out, context.allocate(x.type(), x.dims()));
  if (out.size() == 0) return single(std::move(out));
  const int64_t inner = x.rank() < 2 ? 1 : element_count(std::span(x.dims()).subspan(2));
  return single(dispatch(context, x.type(), FloatTypes{}, [&]<class T>() -> Expected<Tensor> {
    const auto from = x.data<T>();
    const auto to = out.mutable_data<T>();
    for (size_t i = 0; i < from.size(); ++i) {
      const int64_t channel = static_cast<int64_t>(i) / inner % channels;
      to[i] = round_to<T>(f(static_cast<size_t>(channel), static_cast<double>(static_cast<Compute<T>>(from[i]))));
    }
    return std::move(out);
  }));
}

struct ChannelStatistics {
  std::vector<double> mean, variance;
};

/// Of each channel of input 0, over all its samples.
Expected<ChannelStatistics> statistics_of(const KernelContext& context, int64_t channels) {
  ATTN_OPT_TRY(const auto values, context.reals(context.input(0)));
  const auto count = static_cast<double>(values.size()) / static_cast<double>(channels);
  const size_t inner = values.empty() ? 1 : static_cast<size_t>(element_count(std::span(context.input(0).dims()).subspan(2)));
  const auto channel_of = [&](size_t i) { return i / inner % static_cast<size_t>(channels); };
  ChannelStatistics found{std::vector<double>(static_cast<size_t>(channels)), {}};
  found.variance = found.mean;
  for (size_t i = 0; i < values.size(); ++i) found.mean[channel_of(i)] += values[i] / count;
  for (size_t i = 0; i < values.size(); ++i) {
    const double centred = values[i] - found.mean[channel_of(i)];
    found.variance[channel_of(i)] += centred * centred / count;
  }
  return found;
}

/// VALUES in the form of input I.
Expected<Tensor> like_input(const KernelContext& context, size_t i, const std::vector<double>& values) {
  ATTN_OPT_TRY(Tensor tensor, context.allocate(onnx::TensorProto::DOUBLE, context.input(i).dims()));
  std::ranges::copy(values, tensor.mutable_data<double>().begin());
  return tensor.cast(context.input(i).type());
}

std::vector<double> moved(std::vector<double> from, const std::vector<double>& to, double momentum) {
  for (size_t c = 0; c < from.size(); ++c) from[c] = from[c] * momentum + to[c] * (1 - momentum);
  return from;
}

/// Before opset 14 further outputs asked for training.
bool trains(const KernelContext& context) {
  return context.attribute_int("training_mode", 0) != 0 || (context.version < 14 && context.wants(1));
}

Outputs batch_normalization(const KernelContext& context) {
  const Tensor& x = context.input(0);
  if (context.version < 7 && context.attribute_int("is_test", 0) == 0) {
    return context.unsupported("training mode");
  }
  if (context.attribute_int("spatial", 1) == 0) return context.unsupported("spatial = 0");
  const int64_t channels = x.rank() < 2 ? 1 : x.dims()[1];
  ATTN_OPT_TRY(const auto scale, channel_values(context, 1, channels));
  ATTN_OPT_TRY(const auto bias, channel_values(context, 2, channels));
  ChannelStatistics used;
  ATTN_OPT_TRY(used.mean, channel_values(context, 3, channels));
  ATTN_OPT_TRY(used.variance, channel_values(context, 4, channels));
  std::vector<Tensor> outputs(1);
  if (trains(context)) {
    if (x.rank() < 2) return context.unsupported("training without channels");
    ATTN_OPT_TRY(ChannelStatistics current, statistics_of(context, channels));
    const double momentum = context.attribute_float("momentum", 0.9f);
    outputs.resize(context.version < 14 ? 5 : 3);
    ATTN_OPT_TRY(outputs[1], like_input(context, 3, moved(used.mean, current.mean, momentum)));
    ATTN_OPT_TRY(outputs[2], like_input(context, 4, moved(used.variance, current.variance, momentum)));
    if (outputs.size() > 3) {
      ATTN_OPT_TRY(outputs[3], like_input(context, 3, current.mean));
      ATTN_OPT_TRY(outputs[4], like_input(context, 4, current.variance));
    }
    used = std::move(current);
  }
  const double epsilon = context.attribute_float("epsilon", 1e-5f);
  ATTN_OPT_TRY(auto y, map_channels(context, channels, [&](size_t c, double value) {
                 return scale[c] * (value - used.mean[c]) / std::sqrt(used.variance[c] + epsilon) + bias[c];
               }));
  outputs[0] = std::move(y[0]);
  return outputs;
}

Outputs instance_normalization(const KernelContext& context) {
  const Tensor& x = context.input(0);
  if (x.rank() < 3) return context.invalid("input of shape " + print_dims(x.dims()) + " has no spatial axes");
  const int64_t channels = x.dims()[1];
  ATTN_OPT_TRY(const auto scale, channel_values(context, 1, channels));
  ATTN_OPT_TRY(const auto bias, channel_values(context, 2, channels));
  const double epsilon = context.attribute_float("epsilon", 1e-5f);
  const int64_t inner = element_count(std::span(x.dims()).subspan(2));
  ATTN_OPT_TRY(Tensor out, context.allocate(x.type(), x.dims()));
  if (out.size() == 0) return single(std::move(out));
  return single(dispatch(context, x.type(), FloatTypes{}, [&]<class T>() -> Expected<Tensor> {
    const T* from = x.data<T>().data();
    T* to = out.mutable_data<T>().data();
    for (int64_t row = 0; row < x.size() / inner; ++row) {
      const auto c = static_cast<size_t>(row % channels);
      const double mean = mean_of(from, inner);
      const double inverse = inverse_deviation(from, inner, mean, epsilon);
      for (int64_t i = 0; i < inner; ++i) {
        const double centred = static_cast<double>(static_cast<Compute<T>>(*from++)) - mean;
        *to++ = round_to<T>(scale[c] * centred * inverse + bias[c]);
      }
    }
    return std::move(out);
  }));
}

}  // namespace

void register_normalization(KernelRegistry& registry) {
  registry.add("BatchNormalization", 1, 15, batch_normalization);
  registry.add("InstanceNormalization", 1, 22, instance_normalization);
}

}  // namespace attn_opt
