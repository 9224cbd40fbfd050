// The options of commands that run models: sizes, tolerances, precision.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attn_opt/executor.h"
#include "src/cli/options/model_argument.h"
#include "src/trial/draw_inputs.h"
#include "src/trial/rounding_types.h"
#include "src/trial/tensor_difference.h"

namespace attn_opt {

struct TrialArguments {
  std::vector<std::string> dims;
  std::optional<double> rtol, atol;
  std::string compute = "model";
  int threads = 0;                                       ///< 0: one for each processor
  size_t memory_limit = ExecutorOptions().memory_limit;  ///< bytes
  std::function<void(const NodeRun&)> on_node;
  std::vector<std::string> data_folders;
};

/// --dim, --rtol, --atol, --threads, --memory-limit.
void declare_run_options(CLI::App& app, TrialArguments& arguments);
/// Those, --compute and --allow-data-dir.
void declare_trial_options(CLI::App& app, TrialArguments& arguments);

/// Sizes from --dim: all combinations of those that are given for each dimension. Error: kUsage.
Expected<std::vector<Sizes>> sizes_of(const TrialArguments& arguments);
/// Where each dimension has one size. Error: kUsage.
Expected<Sizes> only_sizes_of(const TrialArguments& arguments);

/// A model ready to run. Results may look into it.
struct RunnableModel {
  std::unique_ptr<Model> model;
  std::unique_ptr<RoundingTypes> rounding;  ///< of the runs so far
  std::optional<Executor> executor;
};
Expected<RunnableModel> make_runnable(Model model, const TrialArguments& arguments);
Expected<RunnableModel> load_runnable(const std::string& path, const TrialArguments& arguments);
/// How far ACTUAL lies from EXPECTED, the output NAME of MODEL's last run. Floating types that differ because --compute f64
/// widened one side are compared in double.
TensorDifference difference_of(const TrialArguments& arguments, const RunnableModel& model, const std::string& name,
                               const Tensor& expected, const Tensor& actual);

}  // namespace attn_opt
