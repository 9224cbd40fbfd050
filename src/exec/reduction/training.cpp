// The optimizers of ai.onnx.preview.training: Momentum, Adam, Adagrad. Inputs are R, T, then all variables,
// all gradients, and all of each kind of state; outputs the new variables and states. Computed in double,
// rounded once.
#include <array>
#include <cmath>

#include "src/exec/families.h"

namespace attn_opt {
namespace {

/// Of the variable, its gradient and its states, in the order of the inputs.
template <size_t kStates>
using Wide = std::array<Tensor, 2 + kStates>;

template <size_t kStates>
Expected<Wide<kStates>> read_variable(const KernelContext& context, size_t variable, size_t variables) {
  const Tensor& x = context.input(2 + variable);
  if (x.type() != onnx::TensorProto::FLOAT && x.type() != onnx::TensorProto::DOUBLE) {
    return context.unsupported("element type " + type_name(x.type()));
  }
  Wide<kStates> wide;
  for (size_t kind = 0; kind < wide.size(); ++kind) {
    const Tensor& one = context.input(2 + kind * variables + variable);
    ATTN_OPT_CHECK(context.same_type(x, one));
    if (one.dims() != x.dims()) {
      return context.invalid("variable of shape " + print_dims(x.dims()) + " with a gradient or state of shape " +
                             print_dims(one.dims()));
    }
    ATTN_OPT_CHECK(context.within_budget(one.size(), 2 * wide.size() * sizeof(double)));
    ATTN_OPT_TRY(wide[kind], one.cast(onnx::TensorProto::DOUBLE));
  }
  return wide;
}

/// step(x, gradient, states) updates STATES and returns the new x.
template <size_t kStates, class Step>
Outputs optimize(const KernelContext& context, Step&& step) {
  const size_t given = context.inputs.size() - 2;
  if (given % (2 + kStates) != 0) return context.invalid("not every variable has a gradient and its states");
  const size_t variables = given / (2 + kStates);
  std::vector<Tensor> outputs((1 + kStates) * variables);
  for (size_t variable = 0; variable < variables; ++variable) {
    ATTN_OPT_TRY(const Wide<kStates> wide, read_variable<kStates>(context, variable, variables));
    std::array<Tensor, 1 + kStates> updated;
    for (Tensor& tensor : updated) tensor = Tensor(onnx::TensorProto::DOUBLE, wide[0].dims());
    for (size_t i = 0; i < static_cast<size_t>(wide[0].size()); ++i) {
      std::array<double, kStates> states;
      for (size_t k = 0; k < kStates; ++k) states[k] = wide[2 + k].template data<double>()[i];
      updated[0].template mutable_data<double>()[i] =
          step(wide[0].template data<double>()[i], wide[1].template data<double>()[i], states);
      for (size_t k = 0; k < kStates; ++k) updated[1 + k].template mutable_data<double>()[i] = states[k];
    }
    for (size_t kind = 0; kind < updated.size(); ++kind) {
      ATTN_OPT_TRY(outputs[kind * variables + variable], updated[kind].cast(context.input(2 + variable).type()));
    }
  }
  return outputs;
}

/// Inputs R and T.
struct Rate {
  double learning_rate = 0;
  int64_t updates = 0;
};

Expected<Rate> read_rate(const KernelContext& context) {
  ATTN_OPT_TRY(const auto rate, context.reals(context.input(0)));
  ATTN_OPT_TRY(const auto updates, context.integers(context.input(1)));
  if (rate.size() != 1 || updates.size() != 1) return context.invalid("R or T is not a scalar");
  return Rate{rate[0], updates[0]};
}

Outputs momentum(const KernelContext& context) {
  ATTN_OPT_TRY(const Rate rate, read_rate(context));
  const std::string mode = context.attribute_string("mode", "");
  if (mode != "standard" && mode != "nesterov") return context.invalid("mode is neither standard nor nesterov");
  const double norm = context.attribute_float("norm_coefficient", 0);
  const double alpha = context.attribute_float("alpha", 0);
  const double beta = rate.updates > 0 ? context.attribute_float("beta", 0) : 1;
  return optimize<1>(context, [&](double x, double gradient, std::array<double, 1>& states) {
    const double regularized = norm * x + gradient;
    states[0] = alpha * states[0] + beta * regularized;
    const double direction = mode == "nesterov" ? regularized + alpha * states[0] : states[0];
    return x - rate.learning_rate * direction;
  });
}

Outputs adam(const KernelContext& context) {
  ATTN_OPT_TRY(const Rate rate, read_rate(context));
  const double norm = context.attribute_float("norm_coefficient", 0);
  const double norm_post = context.attribute_float("norm_coefficient_post", 0);
  const double alpha = context.attribute_float("alpha", 0.9f);
  const double beta = context.attribute_float("beta", 0.999f);
  const double epsilon = context.attribute_float("epsilon", 1e-6f);
  const auto updates = static_cast<double>(rate.updates);
  const double correction = rate.updates > 0 ? std::sqrt(1 - std::pow(beta, updates)) / (1 - std::pow(alpha, updates)) : 1;
  return optimize<2>(context, [&](double x, double gradient, std::array<double, 2>& states) {
    const double regularized = norm * x + gradient;
    states[0] = alpha * states[0] + (1 - alpha) * regularized;
    states[1] = beta * states[1] + (1 - beta) * regularized * regularized;
    const double scaled = states[0] / (std::sqrt(states[1]) + epsilon);
    return (1 - norm_post) * (x - rate.learning_rate * correction * scaled);
  });
}

Outputs adagrad(const KernelContext& context) {
  ATTN_OPT_TRY(const Rate rate, read_rate(context));
  const double norm = context.attribute_float("norm_coefficient", 0);
  const double epsilon = context.attribute_float("epsilon", 1e-6f);
  const double decay = context.attribute_float("decay_factor", 0);
  const double learning_rate = rate.learning_rate / (1 + static_cast<double>(rate.updates) * decay);
  return optimize<1>(context, [&](double x, double gradient, std::array<double, 1>& states) {
    const double regularized = norm * x + gradient;
    states[0] += regularized * regularized;
    return x - learning_rate * regularized / (std::sqrt(states[0]) + epsilon);
  });
}

}  // namespace

void register_training(KernelRegistry& registry) {
  registry.add("ai.onnx.preview.training::Momentum", 1, 1, momentum);
  registry.add("ai.onnx.preview.training::Adam", 1, 1, adam);
  registry.add("ai.onnx.preview.training::Adagrad", 1, 1, adagrad);
}

}  // namespace attn_opt
