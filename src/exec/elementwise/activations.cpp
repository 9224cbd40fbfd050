// Activation functions, computed in double where the type is float or narrower and rounded once.
#include <cmath>

#include "src/exec/elementwise/activation_functions.h"
#include "src/exec/elementwise/elementwise.h"
#include "src/exec/families.h"
#include "src/exec/wide.h"

namespace attn_opt {
namespace {

Outputs relu(const KernelContext& context) {
  return map_elements<NumericTypes>(context, [](auto x) { return x < decltype(x){} ? decltype(x){} : x; });
}

/// f(double) of every element.
template <class F>
Outputs activation(const KernelContext& context, F f) {
  return map_elements<FloatTypes>(context, [&](auto x) { return f(static_cast<double>(x)); });
}

Outputs softplus(const KernelContext& context) { return activation(context, softplus_of); }

Outputs softsign(const KernelContext& context) { return activation(context, softsign_of); }

Outputs mish(const KernelContext& context) {
  return activation(context, [](double x) { return x * std::tanh(softplus_of(x)); });
}

Outputs elu(const KernelContext& context) {
  const double alpha = context.attribute_float("alpha", 1.0f);
  return activation(context, [=](double x) { return elu_of(x, alpha); });
}

Outputs celu(const KernelContext& context) {
  const double alpha = context.attribute_float("alpha", 1.0f);
  return activation(context, [=](double x) { return x < 0 ? alpha * std::expm1(x / alpha) : x; });
}

Outputs selu(const KernelContext& context) {
  const double alpha = context.attribute_float("alpha", context.version < 6 ? 1.6732f : 1.67326319217681884765625f);
  const double gamma = context.attribute_float("gamma", context.version < 6 ? 1.0507f : 1.05070102214813232421875f);
  return activation(context, [=](double x) { return gamma * (x <= 0 ? alpha * std::expm1(x) : x); });
}

Outputs leaky_relu(const KernelContext& context) {
  const double alpha = context.attribute_float("alpha", 0.01f);
  return activation(context, [=](double x) { return leaky_relu_of(x, alpha); });
}

Outputs thresholded_relu(const KernelContext& context) {
  const double alpha = context.attribute_float("alpha", 1.0f);
  return activation(context, [=](double x) { return x <= alpha ? 0 : x; });
}

Outputs hard_sigmoid(const KernelContext& context) {
  const double alpha = context.attribute_float("alpha", 0.2f);
  const double beta = context.attribute_float("beta", 0.5f);
  return activation(context, [=](double x) { return hard_sigmoid_of(x, alpha, beta); });
}

Outputs hard_swish(const KernelContext& context) {
  return activation(context, [](double x) { return x * clamp_to_unit(x / 6 + 0.5); });
}

Outputs swish(const KernelContext& context) {
  const double alpha = context.attribute_float("alpha", 1.0f);
  return activation(context, [=](double x) { return x / (1 + std::exp(-alpha * x)); });
}

Outputs gelu(const KernelContext& context) {
  const std::string approximate = context.attribute_string("approximate", "none");
  if (approximate == "tanh") {
    constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
    return activation(context, [](double x) { return 0.5 * x * (1 + std::tanh(kSqrtTwoOverPi * (x + 0.044715 * x * x * x))); });
  }
  if (approximate != "none") return context.invalid("attribute approximate must be none or tanh");
  return activation(context, [](double x) { return 0.5 * x * (1 + std::erf(x * 0.70710678118654752440)); });
}

/// Integers too: computed in double, what is behind the point dropped.
Outputs shrink(const KernelContext& context) {
  const Tensor& x = context.input(0);
  if (x.type() == onnx::TensorProto::BOOL) return context.unsupported("element type bool");
  const double lambd = context.attribute_float("lambd", 0.5f);
  const double bias = context.attribute_float("bias", 0.0f);
  ATTN_OPT_TRY(const Tensor wide, in_double(context, x));
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::DOUBLE, x.dims()));
  std::ranges::transform(wide.data<double>(), out.mutable_data<double>().begin(), [=](double value) {
    if (value < -lambd) return value + bias;
    return value > lambd ? value - bias : 0;
  });
  return single(out.cast(x.type()));
}

}  // namespace

void register_activations(KernelRegistry& registry) {
  registry.add("Relu", 1, 14, relu);
  registry.add("Softplus", 1, 22, softplus);
  registry.add("Softsign", 1, 22, softsign);
  registry.add("Mish", 18, 22, mish);
  registry.add("Elu", 1, 22, elu);
  registry.add("Celu", 12, 12, celu);
  registry.add("Selu", 1, 22, selu);
  registry.add("LeakyRelu", 1, 16, leaky_relu);
  registry.add("ThresholdedRelu", 1, 22, thresholded_relu);
  registry.add("HardSigmoid", 1, 22, hard_sigmoid);
  registry.add("HardSwish", 14, 22, hard_swish);
  registry.add("Swish", 24, 24, swish);
  registry.add("Gelu", 20, 20, gelu);
  registry.add("Shrink", 9, 9, shrink);
}

}  // namespace attn_opt
