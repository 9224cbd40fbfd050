#include <fmt/format.h>

#include <cstdio>

#include "src/cli/commands/commands.h"
#include "src/cli/commands/print_outputs.h"
#include "src/cli/options/trial_arguments.h"
#include "src/cli/profile.h"
#include "src/trial/drawn_run.h"
#include "src/trial/feed_check.h"
#include "src/trial/npz.h"
#include "src/trial/test_data.h"

namespace attn_opt {
namespace {

struct RunArguments {
  std::string model, test_data, inputs, outputs, expected, profile;
  TrialArguments trial;
  Verbosity verbosity;
};

/// Says whether ACTUAL, the output NAME of the run called SOURCE, agrees with EXPECTED.
bool compare_output(const RunArguments& given, const RunnableModel& runnable, const std::string& source,
                    const std::string& name, const Tensor& expected, const Tensor& actual) {
  const TensorDifference found = difference_of(given.trial, runnable, name, expected, actual);
  if (!given.verbosity.quiet) {
    const std::string line =
        fmt::format("{}: {} {}: {}\n", source, name, found.agrees() ? "agrees" : "differs", to_string(found));
    std::fputs(line.c_str(), stdout);
  }
  return found.agrees();
}

/// True if all outputs that SET holds agree with OUTPUTS.
bool compare_outputs(const RunArguments& given, const RunnableModel& runnable, const TestDataSet& set,
                     const std::vector<Tensor>& outputs) {
  bool agree = true;
  for (const auto& [number, expected] : set.outputs) {
    agree = compare_output(given, runnable, set.folder.filename().string(), runnable.model->proto.graph().output(number).name(),
                           expected, outputs[static_cast<size_t>(number)]) &&
            agree;
  }
  return agree;
}

Status run_test_data(const RunArguments& given, const RunnableModel& runnable) {
  const onnx::GraphProto& graph = runnable.model->proto.graph();
  ATTN_OPT_TRY(const auto sets, read_test_data(given.test_data, graph));
  bool agree = true;
  for (const TestDataSet& set : sets) {
    ATTN_OPT_CHECK(check_declared(graph, set.inputs, set.folder.string(), ErrorCode::kInvalidInput));
    ATTN_OPT_TRY(const auto outputs, runnable.executor->run(set.inputs));
    if (set.outputs.empty() && !given.verbosity.quiet) print_outputs(graph, outputs);
    agree = compare_outputs(given, runnable, set, outputs) && agree;
  }
  if (agree) return {};
  return fail(ErrorCode::kMismatch, given.model, "outputs differ from those in " + given.test_data);
}

/// The types of VALUES that are tensors, by name.
std::map<std::string, DataType> declared_types(const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& values) {
  std::map<std::string, DataType> types;
  for (const auto& value : values) {
    types[value.name()] = static_cast<DataType>(value.type().tensor_type().elem_type());
  }
  return types;
}

Expected<std::vector<Tensor>> run_on_given(const RunArguments& given, const RunnableModel& runnable) {
  const auto declared = declared_types(runnable.model->proto.graph().input());
  ATTN_OPT_TRY(auto arrays, read_npz(given.inputs, declared, given.trial.memory_limit));
  Feeds feeds;
  for (auto& [name, tensor] : arrays) {
    if (!declared.contains(name)) {
      return fail(ErrorCode::kInvalidInput, given.inputs, "the model has no input called '" + name + "'");
    }
    feeds.emplace(name, std::move(tensor));
  }
  ATTN_OPT_CHECK(check_declared(runnable.model->proto.graph(), feeds, given.inputs, ErrorCode::kInvalidInput));
  return runnable.executor->run(feeds);
}

Expected<std::vector<Tensor>> run_on_drawn(const RunArguments& given, const RunnableModel& runnable) {
  DrawOptions options;
  options.memory_limit = given.trial.memory_limit;
  ATTN_OPT_TRY(options.sizes, only_sizes_of(given.trial));
  ATTN_OPT_TRY(DrawnRun run, run_on_drawn(*runnable.executor, runnable.model->proto.graph(), options));
  return std::move(run.outputs);
}

Status write_outputs(const RunArguments& given, const onnx::GraphProto& graph, const std::vector<Tensor>& outputs) {
  std::vector<std::pair<std::string, Tensor>> arrays;
  arrays.reserve(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) arrays.emplace_back(graph.output(static_cast<int>(i)).name(), outputs[i]);
  return write_npz(given.outputs, arrays);
}

/// Compares OUTPUTS with those of the same names in the archive of expected ones.
Status check_expected(const RunArguments& given, const RunnableModel& runnable, const std::vector<Tensor>& outputs) {
  const onnx::GraphProto& graph = runnable.model->proto.graph();
  ATTN_OPT_TRY(const auto arrays, read_npz(given.expected, declared_types(graph.output()), given.trial.memory_limit));
  bool agree = true;
  size_t compared = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = graph.output(static_cast<int>(i)).name();
    const auto expected = arrays.find(name);
    if (expected == arrays.end()) continue;
    ++compared;
    agree = compare_output(given, runnable, given.expected, name, expected->second, outputs[i]) && agree;
  }
  if (compared == 0) return fail(ErrorCode::kInvalidInput, given.expected, "has none of the model's outputs");
  if (agree) return {};
  return fail(ErrorCode::kMismatch, given.model, "outputs differ from those in " + given.expected);
}

/// A run on drawn inputs or on those of an archive.
Status run_once(const RunArguments& given, const RunnableModel& runnable) {
  const onnx::GraphProto& graph = runnable.model->proto.graph();
  ATTN_OPT_TRY(const auto outputs, given.inputs.empty() ? run_on_drawn(given, runnable) : run_on_given(given, runnable));
  if (!given.outputs.empty()) {
    ATTN_OPT_CHECK(write_outputs(given, graph, outputs));
  }
  if (!given.expected.empty()) return check_expected(given, runnable, outputs);
  if (!given.verbosity.quiet) print_outputs(graph, outputs);
  return {};
}

void declare(CLI::App& app, RunArguments& given) {
  app.add_option("MODEL", given.model, "Model: .onnx, .onnxtxt, or - for standard input")->required();
  auto* test_data =
      app.add_option("--test-data", given.test_data, "Folder of input_N.pb and output_N.pb; outputs are compared");
  auto* inputs = app.add_option("--inputs", given.inputs, "NumPy archive (.npz) of the inputs by name")->excludes(test_data);
  app.add_option("--outputs", given.outputs, "NumPy archive that the outputs are written to")->excludes(test_data);
  app.add_option("--expected", given.expected, "NumPy archive of outputs by name; those of the run are compared with them")
      ->excludes(test_data);
  app.add_option("--profile", given.profile, "File for the time of each node, in Chrome's trace format (JSON)");
  declare_trial_options(app, given.trial);
  app.get_option("--dim")->excludes(test_data)->excludes(inputs);
  declare_verbosity(app, given.verbosity);
}

Expected<int> run_model(RunArguments& given, const CLI::App&) {
  set_up_log(given.verbosity);
  Profile profile;
  if (!given.profile.empty()) given.trial.on_node = [&profile](const NodeRun& node) { profile.add(node); };
  ATTN_OPT_TRY(const RunnableModel runnable, load_runnable(given.model, given.trial));
  const Status status = given.test_data.empty() ? run_once(given, runnable) : run_test_data(given, runnable);
  if (!given.profile.empty()) {
    ATTN_OPT_CHECK(profile.write(given.profile));
  }
  ATTN_OPT_CHECK(status);
  return 0;
}

}  // namespace

DeclaredCommand run_command() {
  return declared(
      "attn-opt run",
      "Runs a model on the embedded executor: on test data, on given inputs, or on inputs drawn from what it declares.",
      declare, run_model);
}

}  // namespace attn_opt
