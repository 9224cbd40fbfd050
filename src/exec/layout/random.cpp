// Operators that draw: RandomNormal, RandomUniform, their Like forms, Bernoulli, Multinomial, Dropout. What
// is drawn hangs on the node's name, the attribute seed and the calls and iterations around the node: every
// run draws the same.
#include <bit>
#include <cmath>

#include "src/exec/dispatch.h"
#include "src/exec/families.h"
#include "src/exec/layout/random_numbers.h"

namespace attn_opt {
namespace {

RandomNumbers numbers_for(const KernelContext& context) {
  uint64_t seed = hash_bytes(describe(context.node), hash_number(context.place));
  if (const auto* given = context.attribute("seed"); given != nullptr) {
    seed = hash_number(std::bit_cast<uint32_t>(given->f()), hash_number(static_cast<uint64_t>(given->i()), seed));
  }
  return RandomNumbers(seed);
}

/// draw(random) for each element of a tensor of DIMS, of the node's dtype or else OTHERWISE.
template <class Draw>
Outputs drawn(const KernelContext& context, const Dims& dims, DataType otherwise, Draw&& draw) {
  const auto type = static_cast<DataType>(context.attribute_int("dtype", otherwise));
  if (!is_floating(type)) return context.invalid("random numbers of type " + type_name(type));
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::DOUBLE, dims));
  RandomNumbers random = numbers_for(context);
  for (double& element : out.mutable_data<double>()) element = draw(random);
  return single(out.cast(type));
}

Outputs normal(const KernelContext& context, const Dims& dims, DataType otherwise) {
  const double mean = context.attribute_float("mean", 0);
  const double scale = context.attribute_float("scale", 1);
  return drawn(context, dims, otherwise, [=](RandomNumbers& random) { return mean + scale * random.normal(); });
}

Outputs uniform(const KernelContext& context, const Dims& dims, DataType otherwise) {
  const double low = context.attribute_float("low", 0);
  const double high = context.attribute_float("high", 1);
  return drawn(context, dims, otherwise, [=](RandomNumbers& random) { return low + (high - low) * random.uniform(); });
}

using Distribution = Outputs (*)(const KernelContext&, const Dims&, DataType);

template <Distribution kDistribution>
Outputs of_shape(const KernelContext& context) {
  return kDistribution(context, context.attribute_ints("shape"), onnx::TensorProto::FLOAT);
}

template <Distribution kDistribution>
Outputs like_input(const KernelContext& context) {
  return kDistribution(context, context.input(0).dims(), context.input(0).type());
}

/// ONNX's own body gives 1 with probability 1 - p; its text, which counts, says p.
Outputs bernoulli(const KernelContext& context) {
  const Tensor& input = context.input(0);
  ATTN_OPT_TRY(const auto probabilities, context.reals(input));
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::BOOL, input.dims()));
  RandomNumbers random = numbers_for(context);
  size_t i = 0;
  for (bool& one : out.mutable_data<bool>()) {
    const double p = probabilities[i++];
    if (!(p >= 0 && p <= 1)) return context.invalid("a probability is not in [0, 1]");
    one = random.uniform() < p;
  }
  return single(out.cast(static_cast<DataType>(context.attribute_int("dtype", input.type()))));
}

/// Sums of exp(score) up to and with each class, scaled so that the largest term is 1.
std::vector<double> cumulative_weights(std::span<const double> scores) {
  const double largest = *std::ranges::max_element(scores);
  std::vector<double> sums;
  double sum = 0;
  for (const double score : scores) sums.push_back(sum += std::exp(score - largest));
  return sums;
}

Outputs multinomial(const KernelContext& context) {
  const Tensor& input = context.input(0);
  const auto type = static_cast<DataType>(context.attribute_int("dtype", onnx::TensorProto::INT32));
  const int64_t samples = context.attribute_int("sample_size", 1);
  if (input.rank() != 2 || input.dims()[1] < 1 || samples < 1) {
    return context.invalid("no samples, no classes, or input of shape " + print_dims(input.dims()));
  }
  if (type != onnx::TensorProto::INT32 && type != onnx::TensorProto::INT64) {
    return context.invalid("outcomes of type " + type_name(type));
  }
  ATTN_OPT_TRY(const auto scores, context.reals(input));
  const auto classes = static_cast<size_t>(input.dims()[1]);
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::INT64, {input.dims()[0], samples}));
  RandomNumbers random = numbers_for(context);
  const auto to = out.mutable_data<int64_t>();
  for (size_t row = 0; row * classes < scores.size(); ++row) {
    const auto sums = cumulative_weights(std::span(scores).subspan(row * classes, classes));
    if (!std::isfinite(sums.back())) return context.invalid("a row's log-probabilities do not give probabilities");
    for (int64_t& outcome : to.subspan(row * static_cast<size_t>(samples), static_cast<size_t>(samples))) {
      outcome = std::ranges::upper_bound(sums, random.uniform() * sums.back()) - sums.begin();
    }
  }
  return single(out.cast(type));
}

Expected<bool> is_training(const KernelContext& context) {
  if (context.version < 7) return context.attribute_int("is_test", 0) == 0;
  if (context.version < 12 || !context.has(2)) return false;
  const Tensor& training = context.input(2);
  if (training.type() != onnx::TensorProto::BOOL || training.size() != 1) {
    return context.invalid("training_mode is not a bool scalar");
  }
  return training.data<bool>()[0];
}

/// The share of elements to drop: 0 for inference.
Expected<double> dropped_share(const KernelContext& context) {
  ATTN_OPT_TRY(const bool training, is_training(context));
  if (!training) return 0;
  if (!context.has(1)) return context.attribute_float("ratio", 0.5f);
  ATTN_OPT_TRY(const auto ratio, context.reals(context.input(1)));
  if (ratio.size() != 1) return context.invalid("ratio is not a scalar");
  return ratio[0];
}

Outputs dropout(const KernelContext& context) {
  const Tensor& x = context.input(0);
  ATTN_OPT_TRY(const double ratio, dropped_share(context));
  if (!(ratio >= 0 && ratio < 1)) return context.invalid("ratio is not in [0, 1)");
  std::vector<Tensor> outputs{x};
  if (ratio == 0 && !context.wants(1)) return outputs;
  ATTN_OPT_TRY(Tensor mask, context.allocate(onnx::TensorProto::BOOL, x.dims()));
  RandomNumbers random = numbers_for(context);
  for (bool& keeps : mask.mutable_data<bool>()) keeps = ratio == 0 || random.uniform() >= ratio;
  if (ratio != 0) {
    ATTN_OPT_TRY(outputs[0], context.allocate(x.type(), x.dims()));
    ATTN_OPT_CHECK(dispatch(context, x.type(), FloatTypes{}, [&]<class T>() -> Status {
      const double scale = 1 / (1 - ratio);
      std::ranges::transform(x.data<T>(), mask.data<bool>(), outputs[0].mutable_data<T>().begin(), [=](T value, bool keeps) {
        return round_to<T>(static_cast<double>(static_cast<Compute<T>>(value)) * scale * keeps);
      });
      return {};
    }));
  }
  ATTN_OPT_TRY(mask, mask.cast(context.version >= 10 ? onnx::TensorProto::BOOL : x.type()));
  outputs.push_back(std::move(mask));
  return outputs;
}

}  // namespace

void register_random(KernelRegistry& registry) {
  registry.add("RandomNormal", 1, 22, of_shape<normal>);
  registry.add("RandomUniform", 1, 22, of_shape<uniform>);
  registry.add("RandomNormalLike", 1, 22, like_input<normal>);
  registry.add("RandomUniformLike", 1, 22, like_input<uniform>);
  registry.add("Bernoulli", 15, 22, bernoulli);
  registry.add("Multinomial", 7, 22, multinomial);
  registry.add("Dropout", 1, 22, dropout);
}

}  // namespace attn_opt
