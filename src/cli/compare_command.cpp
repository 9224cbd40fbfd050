#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "src/cli/commands.h"
#include "src/cli/trial_arguments.h"
#include "src/trial/drawn_run.h"

namespace attn_opt {
namespace {

struct CompareArguments {
  std::string a, b;
  int seeds = 3;
  TrialArguments trial;
  Verbosity verbosity;
};

std::vector<std::string> names_of(const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& values) {
  std::vector<std::string> names;
  for (const auto& value : values) names.push_back(value.name());
  return names;
}

/// For every output of A, which output of B it is compared with: that of its name; by position if names
/// differ.
Expected<std::vector<size_t>> pair_outputs(const CompareArguments& given, const onnx::GraphProto& a,
                                           const onnx::GraphProto& b) {
  const auto names_a = names_of(a.output()), names_b = names_of(b.output());
  if (names_a.size() != names_b.size()) {
    return fail(ErrorCode::kMismatch, given.b,
                fmt::format("has {} outputs, {} has {}", names_b.size(), given.a, names_a.size()));
  }
  const bool same_names = std::ranges::is_permutation(names_a, names_b);
  std::vector<size_t> partners;
  for (size_t i = 0; i < names_a.size(); ++i) {
    const auto named = std::find(names_b.begin(), names_b.end(), names_a[i]);
    partners.push_back(same_names ? static_cast<size_t>(named - names_b.begin()) : i);
  }
  return partners;
}

Status check_same_inputs(const CompareArguments& given, const onnx::GraphProto& a,
                         const onnx::GraphProto& b) {
  const auto names = names_of(a.input());
  for (const onnx::ValueInfoProto* input : required_inputs(b)) {
    if (std::find(names.begin(), names.end(), input->name()) != names.end()) continue;
    return fail(ErrorCode::kMismatch, given.b,
                "has an input '" + input->name() + "' that " + given.a + " has not");
  }
  return {};
}

Expected<std::vector<TensorDifference>> run_draws(const CompareArguments& given, const RunnableModel& a,
                                                  const RunnableModel& b,
                                                  const std::vector<size_t>& partners) {
  std::vector<TensorDifference> worst(partners.size());
  ATTN_OPT_TRY(const auto combinations, sizes_of(given.trial));
  for (const Sizes& sizes : combinations) {
    for (int seed = 0; seed < given.seeds; ++seed) {
      DrawOptions options;
      options.sizes = sizes;
      options.seed = static_cast<uint64_t>(seed);
      ATTN_OPT_TRY(const DrawnRun run_a, run_on_drawn(*a.executor, a.model->proto.graph(), options));
      ATTN_OPT_TRY(const auto outputs_b, run_on(*b.executor, run_a.inputs));
      for (size_t i = 0; i < partners.size(); ++i) {
        worst[i] = worse(worst[i], difference_of(given.trial, run_a.outputs[i], outputs_b[partners[i]]));
      }
    }
  }
  return worst;
}

/// "no NaN", "same NaN pattern", "NaN pattern differs".
std::string pattern_of(const char* kind, int64_t expected, int64_t elsewhere) {
  if (elsewhere > 0) return fmt::format("{} pattern differs", kind);
  return expected > 0 ? fmt::format("same {} pattern", kind) : fmt::format("no {}", kind);
}

std::string line_of(const std::string& output, const TensorDifference& found) {
  return fmt::format("{}  {}: {}, {}, {}\n", output, found.agrees() ? "agrees" : "differs", to_string(found),
                     pattern_of("NaN", found.nans_expected, found.nans_elsewhere),
                     pattern_of("Inf", found.infinities_expected, found.infinities_elsewhere));
}

}  // namespace

Expected<int> compare_command(const Arguments& arguments) {
  CompareArguments given;
  CLI::App app("Runs two models on the same drawn inputs and compares their outputs.", "attn-opt compare");
  app.add_option("A", given.a, "Model whose inputs are drawn and whose outputs are expected")->required();
  app.add_option("B", given.b, "Model that is compared with it")->required();
  app.add_option("--seeds", given.seeds, "How many draws with each combination of sizes")->check(CLI::PositiveNumber)->capture_default_str();
  declare_trial_options(app, given.trial);
  declare_verbosity(app, given.verbosity);
  ATTN_OPT_TRY(const bool go_on, parse(app, arguments));
  if (!go_on) return 0;
  set_up_log(given.verbosity);
  ATTN_OPT_TRY(const RunnableModel a, load_runnable(given.a, given.trial));
  ATTN_OPT_TRY(const RunnableModel b, load_runnable(given.b, given.trial));
  const onnx::GraphProto &graph_a = a.model->proto.graph(), &graph_b = b.model->proto.graph();
  ATTN_OPT_CHECK(check_same_inputs(given, graph_a, graph_b));
  ATTN_OPT_TRY(const auto partners, pair_outputs(given, graph_a, graph_b));
  ATTN_OPT_TRY(const auto worst, run_draws(given, a, b, partners));
  for (size_t i = 0; i < worst.size() && !given.verbosity.quiet; ++i) {
    std::fputs(line_of(graph_a.output(static_cast<int>(i)).name(), worst[i]).c_str(), stdout);
  }
  if (std::ranges::all_of(worst, &TensorDifference::agrees)) return 0;
  return fail(ErrorCode::kMismatch, given.b, "outputs differ from those of " + given.a);
}

}  // namespace attn_opt
