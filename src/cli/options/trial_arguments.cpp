#include "src/cli/options/trial_arguments.h"

#include <charconv>
#include <cmath>

#include "src/cli/options/command_line.h"

namespace attn_opt {
namespace {

/// Empty if TEXT is a tolerance. NaN, which is neither above nor below one, would hold for any two numbers, or for none.
std::string is_tolerance(const std::string& text) {
  double value = -1;
  const bool is_number = CLI::detail::lexical_cast(text, value) && std::isfinite(value) && value >= 0;
  return is_number ? "" : "'" + text + "' is no number of at least 0";
}

}  // namespace

void declare_run_options(CLI::App& app, TrialArguments& arguments) {
  declare_list(app, "--dim", arguments.dims, "Size of a symbolic dimension of drawn inputs, NAME=N (repeatable)");
  app.add_option("--rtol", arguments.rtol, "Allowed relative difference")->check(is_tolerance);
  app.add_option("--atol", arguments.atol, "Allowed absolute difference")->check(is_tolerance);
  app.add_option("--threads", arguments.threads, "Threads that operators use; 0: one for each processor")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  takes_size(*app.add_option("--memory-limit", arguments.memory_limit,
                             "Most memory that tensors may take, as 512MB; weights that lie in files do not count (4GB)"));
}

void declare_trial_options(CLI::App& app, TrialArguments& arguments) {
  declare_run_options(app, arguments);
  app.add_option("--compute", arguments.compute, "model: in the model's own types; f64: all floats in double")
      ->check(CLI::IsMember({"model", "f64"}))
      ->capture_default_str();
  declare_data_folders(app, arguments.data_folders);
}

namespace {

/// "7,64"; empty if it is no such list.
std::vector<int64_t> numbers_of(std::string_view text) {
  std::vector<int64_t> numbers;
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    int64_t number = -1;
    const auto [parsed, error] = std::from_chars(text.data(), text.data() + comma, number);
    if (error != std::errc() || parsed != text.data() + comma || number < 0) return {};
    numbers.push_back(number);
    if (comma == text.size()) return numbers;
    text.remove_prefix(comma + 1);
  }
}

/// What was given, else what whole models in TYPE may differ by.
Tolerance tolerance_of(const TrialArguments& arguments, DataType type) {
  // Widened constants still differ by what they were rounded to: a scale that is an attribute is a float.
  constexpr Tolerance kWidened = {1e-5, 1e-6};
  const bool widened = arguments.compute == "f64" && type == onnx::TensorProto::DOUBLE;
  return with_given(widened ? kWidened : model_tolerance(type), arguments.rtol, arguments.atol);
}

}  // namespace

Expected<std::vector<Sizes>> sizes_of(const TrialArguments& arguments) {
  std::vector<Sizes> combinations(1);
  for (const std::string& text : arguments.dims) {
    const size_t equals = text.rfind('=');
    const bool is_named = equals != std::string::npos && equals > 0;
    const auto numbers = is_named ? numbers_of(std::string_view(text).substr(equals + 1)) : std::vector<int64_t>();
    constexpr size_t kMost = 10'000;
    if (numbers.empty()) return fail(ErrorCode::kUsage, "--dim", "'" + text + "' is not NAME=N or NAME=N,M,...");
    if (numbers.size() > kMost / combinations.size()) return fail(ErrorCode::kUsage, "--dim", "too many combinations");
    std::vector<Sizes> longer;
    for (const Sizes& sizes : combinations) {
      for (const int64_t number : numbers) {
        longer.push_back(sizes);
        longer.back()[text.substr(0, equals)] = number;
      }
    }
    combinations = std::move(longer);
  }
  return combinations;
}

Expected<Sizes> only_sizes_of(const TrialArguments& arguments) {
  ATTN_OPT_TRY(auto combinations, sizes_of(arguments));
  if (combinations.size() == 1) return std::move(combinations.front());
  return fail(ErrorCode::kUsage, "--dim", "a dimension can have one size only here");
}

TensorDifference difference_of(const TrialArguments& arguments, const RunnableModel& model, const std::string& name,
                               const Tensor& expected, const Tensor& actual) {
  const Tolerance tolerance = tolerance_of(arguments, model.rounding->of(name, element_type(expected)));
  if (arguments.compute != "f64" || !is_floating(expected.type()) || !is_floating(actual.type())) {
    return difference(expected, actual, tolerance);
  }
  const auto wide_expected = expected.cast(onnx::TensorProto::DOUBLE), wide_actual = actual.cast(onnx::TensorProto::DOUBLE);
  if (!wide_expected || !wide_actual) return difference(expected, actual, tolerance);
  return difference(*wide_expected, *wide_actual, tolerance);
}

Expected<RunnableModel> load_runnable(const std::string& path, const TrialArguments& arguments) {
  ATTN_OPT_TRY(Model model, load_valid({path, arguments.data_folders}));
  return make_runnable(std::move(model), arguments);
}

Expected<RunnableModel> make_runnable(Model model, const TrialArguments& arguments) {
  RunnableModel runnable;
  runnable.model = std::make_unique<Model>(std::move(model));
  ExecutorOptions options;
  options.compute_f64 = arguments.compute == "f64";
  options.threads = arguments.threads;
  options.memory_limit = arguments.memory_limit;
  runnable.rounding = std::make_unique<RoundingTypes>(runnable.model->proto.graph());
  options.on_node = [rounding = runnable.rounding.get(), also = arguments.on_node](const NodeRun& run) {
    rounding->note(run);
    if (also) also(run);
  };
  ATTN_OPT_TRY(Executor executor, Executor::create(runnable.model->proto, *runnable.model->tensors, options));
  runnable.executor.emplace(std::move(executor));
  return runnable;
}

}  // namespace attn_opt
