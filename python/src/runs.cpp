// run() and compare(): models on the executor.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/bindings.h"
#include "python/src/errors.h"
#include "python/src/options.h"
#include "python/src/tensors.h"
#include "src/cli/commands/model_comparison.h"
#include "src/trial/feed_check.h"

namespace attn_opt::python {
namespace {

Expected<RunnableModel> runnable_of(ModelSource& source, const TrialArguments& trial) {
  ATTN_OPT_TRY(Model model, source.load());
  return make_runnable(std::move(model), trial);
}

Status check_feeds(const onnx::GraphProto& graph, const Feeds& feeds) {
  std::string names;
  for (const auto& input : graph.input()) names += (names.empty() ? "" : ", ") + input.name();
  for (const auto& [name, tensor] : feeds) {
    const bool is_known =
        std::any_of(graph.input().begin(), graph.input().end(), [&](const auto& input) { return input.name() == name; });
    if (!is_known) return fail(ErrorCode::kUsage, "inputs", "the model has no input called '" + name + "'", "it has " + names);
  }
  return {};
}

struct Results {
  std::optional<RunnableModel> runnable;
  std::vector<Tensor> outputs;
};

Expected<Results> run_on_feeds(ModelSource& source, const TrialArguments& trial, const Feeds& feeds) {
  Results results;
  ATTN_OPT_TRY(results.runnable, runnable_of(source, trial));
  const onnx::GraphProto& graph = results.runnable->model->proto.graph();
  ATTN_OPT_CHECK(check_feeds(graph, feeds));
  ATTN_OPT_CHECK(check_declared(graph, feeds, "inputs", ErrorCode::kInvalidInput));
  ATTN_OPT_TRY(results.outputs, results.runnable->executor->run(feeds));
  return results;
}

/// An output that is an input or an initializer may look into memory that is gone when the run is over.
nb::object own_array(const Tensor& tensor) {
  if (!tensor.is_sequence()) {
    const nb::object array = array_of(tensor);
    return array.is_none() ? array : nb::object(array.attr("copy")());
  }
  nb::list elements;
  for (const Tensor& element : tensor.elements()) elements.append(own_array(element));
  return elements;
}

nb::dict run_model(nb::handle model, const nb::dict& inputs, const nb::dict& options) {
  ModelSource source = source_of(model);
  const TrialArguments trial = trial_of(options);
  nb::list kept;
  Feeds feeds;
  for (const auto& [name, array] : inputs) {
    const auto input = nb::cast<std::string>(name);
    feeds.emplace(input, tensor_of(array, input, kept));
  }
  Expected<Results> results;
  {
    const nb::gil_scoped_release released;
    results = run_on_feeds(source, trial, feeds);
  }
  const Results done = value_or_raise(std::move(results));
  nb::dict outputs;
  const onnx::GraphProto& graph = done.runnable->model->proto.graph();
  for (size_t i = 0; i < done.outputs.size(); ++i) {
    outputs[text(graph.output(static_cast<int>(i)).name())] = own_array(done.outputs[i]);
  }
  return outputs;
}

Expected<std::vector<OutputDifference>> compared(ModelSource& a, ModelSource& b, int seeds, const TrialArguments& trial) {
  ATTN_OPT_TRY(const RunnableModel first, runnable_of(a, trial));
  ATTN_OPT_TRY(const RunnableModel second, runnable_of(b, trial));
  return compare_models({first, "the first model"}, {second, "the second model"}, seeds, trial);
}

nb::dict difference_dict(const OutputDifference& output) {
  const TensorDifference& found = output.difference;
  nb::dict difference;
  difference["name"] = text(output.name);
  difference["agrees"] = found.agrees();
  difference["absolute"] = found.absolute;
  difference["relative"] = found.relative;
  difference["ulp"] = found.ulp;
  difference["nans_elsewhere"] = found.nans_elsewhere;
  difference["infinities_elsewhere"] = found.infinities_elsewhere;
  difference["beyond"] = found.beyond;
  difference["text"] = text(to_string(found));
  return difference;
}

nb::list compare(nb::handle a, nb::handle b, int seeds, const nb::dict& options) {
  ModelSource first = source_of(a), second = source_of(b);
  const TrialArguments trial = trial_of(options);
  Expected<std::vector<OutputDifference>> results;
  {
    const nb::gil_scoped_release released;
    results = compared(first, second, seeds, trial);
  }
  nb::list differences;
  for (const OutputDifference& output : value_or_raise(std::move(results))) differences.append(difference_dict(output));
  return differences;
}

}  // namespace

void bind_runs(nb::module_& module) {
  module.def("run", run_model, nb::arg("model"), nb::arg("inputs"), nb::arg("options"), "The outputs by name.");
  module.def("compare", compare, nb::arg("a"), nb::arg("b"), nb::arg("seeds"), nb::arg("options"),
             "How far each output of A lies from B's.");
}

}  // namespace attn_opt::python
