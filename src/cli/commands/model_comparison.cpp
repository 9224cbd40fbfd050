#include "src/cli/commands/model_comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/trial/drawn_run.h"
#include "src/trial/feed_check.h"

namespace attn_opt {
namespace {

std::vector<std::string> names_of(const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& values) {
  std::vector<std::string> names;
  for (const auto& value : values) names.push_back(value.name());
  return names;
}

/// For every output of A, which output of B it is compared with: that of its name; by position if names
/// differ.
Expected<std::vector<size_t>> pair_outputs(const NamedModel& a, const NamedModel& b) {
  const auto names_a = names_of(a.graph().output()), names_b = names_of(b.graph().output());
  if (names_a.size() != names_b.size()) {
    return fail(ErrorCode::kMismatch, b.name, fmt::format("has {} outputs, {} has {}", names_b.size(), a.name, names_a.size()));
  }
  const bool same_names = std::ranges::is_permutation(names_a, names_b);
  std::vector<size_t> partners;
  for (size_t i = 0; i < names_a.size(); ++i) {
    const auto named = std::ranges::find(names_b, names_a[i]);
    partners.push_back(same_names ? static_cast<size_t>(named - names_b.begin()) : i);
  }
  return partners;
}

Status check_same_inputs(const NamedModel& a, const NamedModel& b) {
  const auto names = names_of(a.graph().input());
  for (const onnx::ValueInfoProto* input : required_inputs(b.graph())) {
    if (std::ranges::find(names, input->name()) != names.end()) continue;
    return fail(ErrorCode::kMismatch, b.name, "has an input '" + input->name() + "' that " + a.name + " has not");
  }
  return {};
}

Expected<std::vector<TensorDifference>> run_draws(const RunnableModel& a, const NamedModel& b, int seeds,
                                                  const TrialArguments& trial, const std::vector<size_t>& partners) {
  std::vector<TensorDifference> worst(partners.size());
  ATTN_OPT_TRY(const auto combinations, sizes_of(trial));
  for (const Sizes& sizes : combinations) {
    for (int seed = 0; seed < seeds; ++seed) {
      DrawOptions options;
      options.sizes = sizes;
      options.seed = static_cast<uint64_t>(seed);
      ATTN_OPT_TRY(const DrawnRun run_a, run_on_drawn(*a.executor, a.model->proto.graph(), options));
      ATTN_OPT_CHECK(check_declared(b.graph(), run_a.inputs.feeds, b.name, ErrorCode::kMismatch));
      ATTN_OPT_TRY(const auto outputs_b, run_on(*b.model.executor, run_a.inputs));
      for (size_t i = 0; i < partners.size(); ++i) {
        const std::string& name = a.model->proto.graph().output(static_cast<int>(i)).name();
        worst[i] = worse(worst[i], difference_of(trial, a, name, run_a.outputs[i], outputs_b[partners[i]]));
      }
    }
  }
  return worst;
}

}  // namespace

Expected<std::vector<OutputDifference>> compare_models(const NamedModel& a, const NamedModel& b, int seeds,
                                                       const TrialArguments& trial) {
  ATTN_OPT_CHECK(check_same_inputs(a, b));
  ATTN_OPT_TRY(const auto partners, pair_outputs(a, b));
  ATTN_OPT_TRY(auto worst, run_draws(a.model, b, seeds, trial, partners));
  std::vector<OutputDifference> outputs;
  outputs.reserve(worst.size());
  for (size_t i = 0; i < worst.size(); ++i)
    outputs.push_back({a.graph().output(static_cast<int>(i)).name(), std::move(worst[i])});
  return outputs;
}

}  // namespace attn_opt
