#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "src/cli/commands.h"
#include "src/cli/trial_arguments.h"
#include "src/trial/test_data.h"

namespace attn_opt {
namespace {

struct RunArguments {
  std::string model, test_data;
  TrialArguments trial;
  Verbosity verbosity;
};

/// "min -1.2  max 3  mean 0.1", of the elements that are not NaN.
std::string range_of(const Tensor& tensor) {
  const auto values = tensor.cast(onnx::TensorProto::DOUBLE);
  if (tensor.type() == onnx::TensorProto::STRING || !values || values->size() == 0) return {};
  double least = std::numeric_limits<double>::infinity(), most = -least, sum = 0;
  int64_t nans = 0;
  for (const double value : values->data<double>()) {
    if (std::isnan(value)) {
      ++nans;
      continue;
    }
    least = std::min(least, value);
    most = std::max(most, value);
    sum += value;
  }
  const int64_t counted = values->size() - nans;
  std::string text;
  if (counted > 0) {
    text =
        fmt::format("  min {:.6g}  max {:.6g}  mean {:.6g}", least, most, sum / static_cast<double>(counted));
  }
  return nans == 0 ? text : text + fmt::format("  NaN {}", nans);
}

void print_outputs(const onnx::GraphProto& graph, const std::vector<Tensor>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string line =
        fmt::format("{}  {} {}{}\n", graph.output(static_cast<int>(i)).name(), type_name(outputs[i].type()),
                    to_string(outputs[i].dims()), range_of(outputs[i]));
    std::fputs(line.c_str(), stdout);
  }
}

/// True if all outputs that SET holds agree with OUTPUTS.
Expected<bool> compare_outputs(const RunArguments& given, const TestDataSet& set,
                               const onnx::GraphProto& graph, const std::vector<Tensor>& outputs) {
  bool agree = true;
  for (const auto& [number, expected] : set.outputs) {
    const auto index = static_cast<size_t>(number);
    if (index >= outputs.size()) {
      return fail(ErrorCode::kInvalidInput, set.folder.string(),
                  fmt::format("output_{}.pb: the model has {} outputs", number, outputs.size()));
    }
    const TensorDifference found = difference_of(given.trial, expected, outputs[index]);
    agree = agree && found.agrees();
    if (given.verbosity.quiet) continue;
    const std::string line =
        fmt::format("{}: {} {}: {}\n", set.folder.filename().string(), graph.output(number).name(),
                    found.agrees() ? "agrees" : "differs", to_string(found));
    std::fputs(line.c_str(), stdout);
  }
  return agree;
}

Status run_test_data(const RunArguments& given, const RunnableModel& runnable) {
  const onnx::GraphProto& graph = runnable.model->proto.graph();
  ATTN_OPT_TRY(const auto sets, read_test_data(given.test_data, graph));
  bool agree = true;
  for (const TestDataSet& set : sets) {
    ATTN_OPT_TRY(const auto outputs, runnable.executor->run(set.inputs));
    if (set.outputs.empty() && !given.verbosity.quiet) print_outputs(graph, outputs);
    ATTN_OPT_TRY(const bool set_agrees, compare_outputs(given, set, graph, outputs));
    agree = agree && set_agrees;
  }
  if (agree) return {};
  return fail(ErrorCode::kMismatch, given.model, "outputs differ from those in " + given.test_data);
}

Status run_drawn(const RunArguments& given, const RunnableModel& runnable) {
  DrawOptions options;
  ATTN_OPT_TRY(options.sizes, sizes_of(given.trial));
  ATTN_OPT_TRY(const DrawnInputs inputs, draw_inputs(runnable.model->proto.graph(), options));
  ATTN_OPT_TRY(const auto outputs, run_on(*runnable.executor, inputs));
  if (!given.verbosity.quiet) print_outputs(runnable.model->proto.graph(), outputs);
  return {};
}

}  // namespace

Expected<int> run_command(const Arguments& arguments) {
  RunArguments given;
  CLI::App app(
      "Runs a model on the embedded executor: on test data, else on inputs drawn from what it declares.",
      "attn-opt run");
  app.add_option("MODEL", given.model, "Model: .onnx, .onnxtxt, or - for standard input")->required();
  auto* test_data = app.add_option("--test-data", given.test_data,
                                   "Folder of input_N.pb and output_N.pb; outputs are compared");
  declare_trial_options(app, given.trial);
  app.get_option("--dim")->excludes(test_data);
  declare_verbosity(app, given.verbosity);
  ATTN_OPT_TRY(const bool go_on, parse(app, arguments));
  if (!go_on) return 0;
  set_up_log(given.verbosity);
  ATTN_OPT_TRY(const RunnableModel runnable, load_runnable(given.model, given.trial));
  ATTN_OPT_CHECK(given.test_data.empty() ? run_drawn(given, runnable) : run_test_data(given, runnable));
  return 0;
}

}  // namespace attn_opt
