#include "src/opset/draft_comparison.h"

#include <algorithm>
#include <optional>

#include "attn_opt/executor.h"
#include "src/opset/trial_inputs.h"
#include "src/trial/tensor_difference.h"

namespace attn_opt {
namespace {

constexpr size_t kMemoryLimit = size_t{1} << 26;
constexpr int kUnknownRanks[] = {4, 3, 2, 1, 5};

ExecutorOptions trial_options() {
  ExecutorOptions options;
  options.memory_limit = kMemoryLimit;
  options.schema_bodies = SchemaBodies::kAttention;
  return options;
}

Opsets opsets_of(int version) { return {{"", version}}; }

Expected<std::vector<Tensor>> run_draft(const Draft& draft, const std::vector<Tensor>& inputs, int opset, int output_count) {
  const ExecutorOptions options = trial_options();
  std::unordered_map<std::string, Tensor> values;
  for (size_t i = 0; i < inputs.size(); ++i) values.emplace(draft_input(i), inputs[i]);
  for (const onnx::NodeProto* node : draft.nodes()) {
    std::vector<Tensor> arguments;
    for (const auto& name : node->input()) arguments.push_back(values[name]);
    ATTN_OPT_TRY(auto results, run_node(*node, arguments, opsets_of(opset), options));
    for (size_t i = 0; i < results.size() && i < static_cast<size_t>(node->output_size()); ++i) {
      values.insert_or_assign(node->output(static_cast<int>(i)), std::move(results[i]));
    }
  }
  std::vector<Tensor> outputs;
  outputs.reserve(output_count);
  for (int i = 0; i < output_count; ++i) outputs.push_back(values[draft_output(static_cast<size_t>(i))]);
  return outputs;
}

/// Why the results of NODE and those of the draft are not the same; empty if they are.
std::string difference_of(const Node& node, const std::vector<Tensor>& expected, const std::vector<Tensor>& actual) {
  for (size_t i = 0; i < std::min(node.outputs.size(), expected.size()); ++i) {
    if (node.outputs[i] == nullptr || (node.outputs[i]->unused() && !actual[i].has_value())) continue;
    if (!actual[i].has_value()) return "output " + std::to_string(i) + " is missing";
    const TensorDifference found = difference(expected[i], actual[i], {});
    if (!found.agrees()) return "output " + std::to_string(i) + ": " + to_string(found);
  }
  return {};
}

/// Why there can be no trial; nothing if there can.
std::optional<std::string> reason_against(const onnx::NodeProto& original, int from, const Draft& draft, int to) {
  if (is_random(original)) return "its result is random";
  if (!can_run(original, opsets_of(from)))
    return "the executor does not run " + original.op_type() + " of opset " + std::to_string(from);
  for (const onnx::NodeProto* node : draft.nodes()) {
    if (!can_run(*node, opsets_of(to)))
      return "the executor does not run " + node->op_type() + " of opset " + std::to_string(to);
  }
  for (const auto& attribute : original.attribute()) {
    if (!attribute.ref_attr_name().empty()) return "attribute " + attribute.name() + " is given by the function's caller";
  }
  return std::nullopt;
}

class Trial {
 public:
  Trial(const onnx::NodeProto& original, int from, const Draft& draft, int to, const RaiseSite& site)
      : original_(original), from_(from), draft_(draft), to_(to), site_(site), inputs_(original, site) {}

  Comparison run() {
    std::vector<TrialChoice> choices{{.shrink = true}, {.shrink = false}};
    if (inputs_.has_names()) choices.push_back({.shrink = true, .alike = true});
    if (inputs_.has_fitting_sizes()) choices.push_back({.shrink = true, .fit = true});
    for (const TrialChoice& choice : choices) {
      if (!agrees_on_all(choice)) return {Agreement::kDifferent, why_};
      if (compared_ > 0) return {Agreement::kEqual, {}};
    }
    return {Agreement::kUnknown, why_};
  }

 private:
  bool agrees_on_all(TrialChoice choice) {
    std::vector<int> ranks(1, 0);
    if (inputs_.has_unknown_rank()) ranks.assign(std::begin(kUnknownRanks), std::end(kUnknownRanks));
    for (const int rank : ranks) {
      choice.unknown_rank = rank;
      for (choice.draw = 0; choice.draw < TrialInputs::kDraws; ++choice.draw) {
        if (!agrees(choice)) return false;
      }
    }
    return true;
  }

  /// False if both ran and differ, or only the original ran.
  bool agrees(const TrialChoice& choice) {
    const auto inputs = inputs_.draw(choice);
    if (!inputs) return nothing(inputs.error());
    const ExecutorOptions options = trial_options();
    const auto expected = run_node(original_, *inputs, opsets_of(from_), options);
    if (!expected) return nothing(expected.error());
    const auto actual = run_draft(draft_, *inputs, to_, original_.output_size());
    if (!actual && choice.shrink && !choice.fit) return nothing(actual.error());
    why_ = actual ? difference_of(site_.node(), *expected, *actual) : actual.error().what;
    ++compared_;
    return why_.empty();
  }

  bool nothing(const Error& error) {
    why_ = error.what;
    return true;
  }

  const onnx::NodeProto& original_;
  int from_;
  const Draft& draft_;
  int to_;
  const RaiseSite& site_;
  TrialInputs inputs_;
  std::string why_;
  int compared_ = 0;
};

}  // namespace

Comparison compare(const onnx::NodeProto& original, int from, const Draft& draft, int to, const RaiseSite& site) {
  if (auto reason = reason_against(original, from, draft, to)) return {Agreement::kUnknown, std::move(*reason)};
  return Trial(original, from, draft, to, site).run();
}

}  // namespace attn_opt
