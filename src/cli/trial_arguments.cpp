#include "src/cli/trial_arguments.h"

#include <charconv>

namespace attn_opt {

void declare_trial_options(CLI::App& app, TrialArguments& arguments) {
  declare_list(app, "--dim", arguments.dims,
               "Size of a symbolic dimension of the inputs, NAME=N (repeatable)");
  app.add_option("--rtol", arguments.rtol, "Allowed relative difference")->check(CLI::NonNegativeNumber);
  app.add_option("--atol", arguments.atol, "Allowed absolute difference")->check(CLI::NonNegativeNumber);
  app.add_option("--compute", arguments.compute, "model: in the model's own types; f64: all floats in double")
      ->check(CLI::IsMember({"model", "f64"}))
      ->capture_default_str();
  declare_data_folders(app, arguments.data_folders);
}

Expected<Sizes> sizes_of(const TrialArguments& arguments) {
  Sizes sizes;
  for (const std::string& text : arguments.dims) {
    const size_t equals = text.rfind('=');
    int64_t size = -1;
    if (equals != std::string::npos && equals > 0) {
      const char *begin = text.data() + equals + 1, *end = text.data() + text.size();
      const auto [parsed, error] = std::from_chars(begin, end, size);
      if (error != std::errc() || parsed != end) size = -1;
    }
    if (size < 0) return fail(ErrorCode::kUsage, "--dim", "'" + text + "' is not NAME=N");
    sizes[text.substr(0, equals)] = size;
  }
  return sizes;
}

Tolerance tolerance_of(const TrialArguments& arguments, DataType type) {
  // Widened constants still differ by what they were rounded to: a scale that is an attribute is a float.
  constexpr Tolerance kWidened = {1e-5, 1e-6};
  const bool widened = arguments.compute == "f64" && type == onnx::TensorProto::DOUBLE;
  Tolerance tolerance = widened ? kWidened : model_tolerance(type);
  if (arguments.rtol) tolerance.relative = *arguments.rtol;
  if (arguments.atol) tolerance.absolute = *arguments.atol;
  return tolerance;
}

TensorDifference difference_of(const TrialArguments& arguments, const Tensor& expected,
                               const Tensor& actual) {
  const Tolerance tolerance = tolerance_of(arguments, expected.type());
  if (arguments.compute != "f64" || !is_floating(expected.type()) || !is_floating(actual.type())) {
    return difference(expected, actual, tolerance);
  }
  const auto wide_expected = expected.cast(onnx::TensorProto::DOUBLE),
             wide_actual = actual.cast(onnx::TensorProto::DOUBLE);
  if (!wide_expected || !wide_actual) return difference(expected, actual, tolerance);
  return difference(*wide_expected, *wide_actual, tolerance);
}

Expected<RunnableModel> load_runnable(const std::string& path, const TrialArguments& arguments) {
  RunnableModel runnable;
  ATTN_OPT_TRY(Model model, load_valid({path, arguments.data_folders}));
  runnable.model = std::make_unique<Model>(std::move(model));
  ExecutorOptions options;
  options.compute_f64 = arguments.compute == "f64";
  ATTN_OPT_TRY(Executor executor, Executor::create(runnable.model->proto, *runnable.model->tensors, options));
  runnable.executor.emplace(std::move(executor));
  return runnable;
}

}  // namespace attn_opt
