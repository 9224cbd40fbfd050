#include "src/trial/drawn_run.h"

#include <algorithm>
#include <cmath>

namespace attn_opt {
namespace {

constexpr size_t kMostAttempts = 40;

/// Sizes to try after DRAWN, of those symbols that GIVEN leaves open.
std::vector<Sizes> other_sizes(const Sizes& drawn, const Sizes& given) {
  std::vector<Sizes> others;
  for (const auto& [sum, ignored] : drawn) {
    if (given.contains(sum)) continue;
    for (auto one = drawn.begin(); one != drawn.end(); ++one) {
      for (auto two = std::next(one); two != drawn.end(); ++two) {
        if (one->first == sum || two->first == sum) continue;
        Sizes sizes = drawn;
        sizes[sum] = one->second + two->second;
        others.push_back(std::move(sizes));
        if (others.size() == kMostAttempts) return others;
      }
    }
  }
  constexpr int64_t kSame[] = {4, 8, 1};
  for (const int64_t size : kSame) {
    Sizes sizes = drawn;
    for (auto& [symbol, value] : sizes) value = given.contains(symbol) ? value : size;
    others.push_back(std::move(sizes));
  }
  return others;
}

bool has_nan(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors) {
    if (!is_floating(tensor.type())) continue;
    const auto wide = tensor.cast(onnx::TensorProto::DOUBLE);
    if (wide && std::ranges::any_of(wide->data<double>(), [](double value) { return std::isnan(value); })) return true;
  }
  return false;
}

Expected<DrawnRun> attempt(const Executor& executor, const onnx::GraphProto& graph, const DrawOptions& options) {
  DrawnRun run;
  ATTN_OPT_TRY(run.inputs, draw_inputs(graph, options));
  ATTN_OPT_TRY(run.outputs, run_on(executor, run.inputs));
  return run;
}

/// Those of OPTIONS, and FILL for the bool inputs that they leave open.
DrawOptions with_bools(DrawOptions options, const onnx::GraphProto& graph, const Fill& fill) {
  for (const auto* input : required_inputs(graph)) {
    if (input->type().tensor_type().elem_type() == onnx::TensorProto::BOOL) options.fills.try_emplace(input->name(), fill);
  }
  return options;
}

}  // namespace

Expected<DrawnRun> run_on_drawn(const Executor& executor, const onnx::GraphProto& graph, const DrawOptions& options) {
  auto run = attempt(executor, graph, options);
  DrawOptions fitting = options;
  if (!run && run.error().code == ErrorCode::kInvalidInput) {
    ATTN_OPT_TRY(const DrawnInputs drawn, draw_inputs(graph, options));
    for (Sizes& sizes : other_sizes(drawn.sizes, options.sizes)) {
      fitting.sizes = std::move(sizes);
      auto other = attempt(executor, graph, fitting);
      if (!other) continue;
      run = std::move(other);
      break;
    }
  }
  if (!run || !has_nan(run->outputs)) return run;
  for (const Fill& fill :
       {Fill{Fill::Kind::kConstant, {1}}, Fill{Fill::Kind::kConstant, {0}}, Fill{Fill::Kind::kBernoulli, {0.5}}}) {
    const DrawOptions refilled = with_bools(fitting, graph, fill);
    if (refilled.fills.size() == fitting.fills.size()) break;
    auto other = attempt(executor, graph, refilled);
    if (other && !has_nan(other->outputs)) return other;
  }
  return run;
}

}  // namespace attn_opt
