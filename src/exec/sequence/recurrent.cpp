#include "src/exec/sequence/recurrent.h"

#include <cctype>

#include "src/exec/elementwise/activation_functions.h"
#include "src/exec/layout/copy.h"
#include "src/exec/wide.h"

namespace attn_opt {
namespace {

struct NamedFunction {
  const char* name;
  double (*function)(double x, double alpha, double beta);
  int parameters;              ///< alpha, or alpha and beta
  double alpha = 0, beta = 0;  ///< where the node gives none
};

constexpr NamedFunction kFunctions[] = {
    {"relu", [](double x, double, double) { return relu_of(x); }, 0},
    {"tanh", [](double x, double, double) { return std::tanh(x); }, 0},
    {"sigmoid", [](double x, double, double) { return sigmoid_of(x); }, 0},
    {"affine", [](double x, double alpha, double beta) { return alpha * x + beta; }, 2, 1, 0},
    {"leakyrelu", [](double x, double alpha, double) { return leaky_relu_of(x, alpha); }, 1, 0.01},
    {"thresholdedrelu", [](double x, double alpha, double) { return x >= alpha ? x : 0; }, 1, 1},
    {"scaledtanh", [](double x, double alpha, double beta) { return alpha * std::tanh(beta * x); }, 2, 1, 1},
    {"hardsigmoid", hard_sigmoid_of, 2, static_cast<double>(0.2f), 0.5},
    {"elu", [](double x, double alpha, double) { return elu_of(x, alpha); }, 1, 1},
    {"softsign", [](double x, double, double) { return softsign_of(x); }, 0},
    {"softplus", [](double x, double, double) { return softplus_of(x); }, 0},
};

const NamedFunction* find_function(std::string name) {
  for (char& letter : name) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  const auto* found = std::ranges::find_if(kFunctions, [&](const auto& one) { return name == one.name; });
  return found == std::end(kFunctions) ? nullptr : found;
}

/// The functions of all directions; alphas and betas go to those that take some, in this order.
Expected<std::vector<Activation>> read_functions(const KernelContext& context, const RecurrentForm& form, int64_t directions) {
  std::vector<std::string> names;
  const auto* given = context.attribute("activations");
  if (given != nullptr) names.assign(given->strings().begin(), given->strings().end());
  for (int64_t i = 0; i < directions && given == nullptr; ++i) {
    names.insert(names.end(), form.activations.begin(), form.activations.end());
  }
  const size_t count = form.activations.size() * static_cast<size_t>(directions);
  if (names.size() < count) return context.invalid("activations are fewer than the directions need");
  names.resize(count);
  const double clip = context.attribute_float("clip", std::numeric_limits<float>::infinity());
  if (!(clip > 0)) return context.invalid("clip is not positive");
  const auto values = [&](const char* name) {
    const auto* attribute = context.attribute(name);
    return attribute == nullptr ? std::vector<float>()
                                : std::vector<float>(attribute->floats().begin(), attribute->floats().end());
  };
  const std::array parameters{values("activation_alpha"), values("activation_beta")};
  std::array<size_t, 2> used{};
  const auto next = [&](size_t i, const NamedFunction& named, double otherwise) {
    const bool takes = static_cast<int>(i) < named.parameters && used[i] < parameters[i].size();
    return takes ? static_cast<double>(parameters[i][used[i]++]) : otherwise;
  };
  std::vector<Activation> functions;
  for (const std::string& name : names) {
    const NamedFunction* named = find_function(name);
    if (named == nullptr) return context.invalid("there is no activation " + name.substr(0, 40));
    functions.push_back({named->function, next(0, *named, named->alpha), next(1, *named, named->beta), clip});
  }
  return functions;
}

/// TENSOR with the batch of a batch-first state or input behind the axis that follows it.
Expected<Tensor> time_first(const KernelContext& context, const Recurrence& r, const Tensor& tensor) {
  return r.batch_first ? transposed(context, tensor, {1, 0, 2}) : tensor;
}

Status read_lengths(const KernelContext& context, Recurrence& r) {
  r.lengths.assign(static_cast<size_t>(r.batch), r.steps);
  if (!context.has(4)) return {};
  ATTN_OPT_TRY(r.lengths, context.integers(context.input(4)));
  const auto in_range = [&](int64_t length) { return length >= 0 && length <= r.steps; };
  if (static_cast<int64_t>(r.lengths.size()) == r.batch && std::ranges::all_of(r.lengths, in_range)) return {};
  return context.invalid("sequence_lens are not a length of up to " + std::to_string(r.steps) + " for each sequence");
}

Status read_direction(const KernelContext& context, Recurrence& r) {
  const std::string direction = context.attribute_string("direction", "forward");
  r.starts_reversed = direction == "reverse";
  r.directions = direction == "bidirectional" ? 2 : 1;
  if (r.directions == 1 && !r.starts_reversed && direction != "forward") {
    return context.invalid("direction is " + direction.substr(0, 40));
  }
  return {};
}

/// Sets the sizes, from the shapes of x, W and R.
Status read_sizes(const KernelContext& context, Recurrence& r) {
  const Dims& weights = r.weights.dims();
  const Dims& recurrent = r.recurrent.dims();
  bool fits = r.x.rank() == 3 && weights.size() == 3 && recurrent.size() == 3;
  if (fits) {
    r.steps = r.x.dims()[0];
    r.batch = r.x.dims()[1];
    r.inputs = r.x.dims()[2];
    r.hidden = recurrent[2];
    const int64_t rows = element_count(std::array{r.gates, r.hidden});
    fits = weights == Dims{r.directions, rows, r.inputs} && recurrent == Dims{r.directions, rows, r.hidden} &&
           context.attribute_int("hidden_size", r.hidden) == r.hidden;
  }
  if (fits) return {};
  return context.invalid("weights of shapes " + print_dims(weights) + " and " + print_dims(recurrent) +
                         " do not fit input of shape " + print_dims(r.x.dims()));
}

}  // namespace

Expected<Recurrence> read_recurrence(const KernelContext& context, const RecurrentForm& form) {
  Recurrence r;
  const DataType type = product_type(context.input(0).type());
  if (!is_floating(type)) return context.unsupported("element type " + type_name(type));
  r.gates = form.gates;
  r.batch_first = context.attribute_int("layout", 0) != 0;
  ATTN_OPT_CHECK(read_direction(context, r));
  for (const size_t i : {size_t{1}, size_t{2}}) ATTN_OPT_CHECK(context.same_type(context.input(0), context.input(i)));
  if (context.input(0).rank() != 3) return context.invalid("input is not a batch of sequences");
  ATTN_OPT_TRY(const Tensor x, in_type(context, context.input(0), type));
  ATTN_OPT_TRY(r.x, time_first(context, r, x));
  ATTN_OPT_TRY(r.weights, in_type(context, context.input(1), type));
  ATTN_OPT_TRY(r.recurrent, in_type(context, context.input(2), type));
  ATTN_OPT_CHECK(read_sizes(context, r));
  ATTN_OPT_CHECK(read_lengths(context, r));
  ATTN_OPT_TRY(r.functions, read_functions(context, form, r.directions));
  const int64_t width = r.gates * r.hidden;
  const int64_t rows = element_count(std::array{r.steps, r.batch});
  ATTN_OPT_CHECK(check_extents(context, {rows, width, std::max(r.inputs, r.hidden)}));
  ATTN_OPT_CHECK(context.within_budget(element_count(std::array{rows, width}), element_size(type)));
  ATTN_OPT_TRY(r.bias, read_or_zeros(context, 3, r, {r.directions, 2 * width}, false));
  ATTN_OPT_TRY(r.initial, read_or_zeros(context, 5, r, {r.directions, r.batch, r.hidden}, true));
  return r;
}

Expected<Tensor> read_or_zeros(const KernelContext& context, size_t i, const Recurrence& recurrence, const Dims& dims,
                               bool is_state) {
  const Tensor& given = context.input(i);
  if (!given.has_value()) return context.allocate(recurrence.x.type(), dims);
  ATTN_OPT_CHECK(context.same_type(context.input(0), given));
  ATTN_OPT_TRY(Tensor tensor, in_type(context, given, recurrence.x.type()));
  if (is_state && tensor.rank() == 3) {
    ATTN_OPT_TRY(tensor, time_first(context, recurrence, tensor));
  }
  if (tensor.dims() == dims) return tensor;
  return context.invalid("input " + std::to_string(i) + " of shape " + print_dims(given.dims()) +
                         " does not fit input of shape " + print_dims(context.input(0).dims()));
}

Expected<Tensor> in_layout(const KernelContext& context, const Recurrence& recurrence, const Tensor& tensor) {
  ATTN_OPT_TRY(Tensor narrow, in_type(context, tensor, context.input(0).type()));
  if (!recurrence.batch_first) return narrow;
  return transposed(context, narrow, tensor.rank() == 3 ? std::vector<int64_t>{1, 0, 2} : std::vector<int64_t>{2, 0, 1, 3});
}

}  // namespace attn_opt
