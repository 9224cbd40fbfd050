#include "tests/exec/random_case.h"

#include <cmath>

namespace attn_opt::testing {
namespace {

constexpr double kDeviations = 5;

std::vector<double> doubles(const Tensor& tensor) {
  const Tensor wide = *tensor.cast(onnx::TensorProto::DOUBLE);
  return {wide.data<double>().begin(), wide.data<double>().end()};
}

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

const onnx::NodeProto* drawing_node(const onnx::GraphProto& graph) {
  for (const auto& node : graph.node()) {
    if (is_random(node)) return &node;
  }
  return nullptr;
}

double scalar_input(const onnx::NodeProto& node, int i, const Feeds& feeds, double otherwise) {
  if (i >= node.input_size() || node.input(i).empty()) return otherwise;
  return doubles(feeds.at(node.input(i)))[0];
}

/// Why a count of SEEN, of which EXPECTED were probable with VARIANCE, is not a draw's.
std::string far_off(const char* what, double seen, double expected, double variance) {
  if (std::abs(seen - expected) <= kDeviations * std::sqrt(variance)) return {};
  return std::to_string(seen) + " " + what + ", " + std::to_string(expected) + " expected";
}

std::string judge_bernoulli(const onnx::NodeProto& node, const Feeds& feeds, const Tensor& result) {
  double expected = 0, variance = 0;
  for (double p : doubles(feeds.at(node.input(0)))) {
    if (node.op_type() != "Bernoulli") p = 1 - p;  // ONNX's body compares the wrong way round
    expected += p;
    variance += p * (1 - p);
  }
  const auto drawn = doubles(result);
  for (const double one : drawn) {
    if (one != 0 && one != 1) return std::to_string(one) + " is neither 0 nor 1";
  }
  return far_off("ones", sum_of(drawn), expected, variance);
}

std::string judge_dropout(const onnx::NodeProto& node, const Feeds& feeds, const std::vector<Tensor>& results) {
  const double ratio = scalar_input(node, 1, feeds, 0.5);
  const auto x = doubles(feeds.at(node.input(0)));
  const auto y = doubles(results[0]);
  double kept = 0, counted = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] == 0) continue;
    const double scaled = x[i] / (1 - ratio);
    if (y[i] != 0 && std::abs(y[i] - scaled) > 1e-3 * std::abs(scaled)) {
      return std::to_string(x[i]) + " became " + std::to_string(y[i]);
    }
    if (results.size() > 1 && doubles(results[1])[i] != (y[i] != 0)) return "mask and output differ";
    kept += y[i] != 0;
    ++counted;
  }
  return far_off("kept", kept, counted * (1 - ratio), counted * ratio * (1 - ratio));
}

std::string misfit(const onnx::ValueInfoProto& declared, const Tensor& result) {
  const auto& type = declared.type().tensor_type();
  const bool widened = result.type() == onnx::TensorProto::DOUBLE && is_floating(static_cast<DataType>(type.elem_type()));
  if (result.type() != type.elem_type() && !widened) return "an output is of type " + type_name(result.type());
  Dims dims;
  for (const auto& dim : type.shape().dim()) dims.push_back(dim.dim_value());
  return result.dims() == dims ? "" : "an output is of another shape";
}

}  // namespace

bool is_draw(const onnx::GraphProto& graph, const Feeds& feeds) {
  const onnx::NodeProto* node = drawing_node(graph);
  if (node == nullptr || node->op_type() != "Dropout") return node != nullptr;
  return scalar_input(*node, 2, feeds, 0) != 0 && scalar_input(*node, 1, feeds, 0.5) != 0;
}

std::string improbable(const onnx::GraphProto& graph, const Feeds& feeds, const std::vector<Tensor>& results) {
  const onnx::NodeProto& node = *drawing_node(graph);
  for (size_t i = 0; i < results.size(); ++i) {
    if (std::string why = misfit(graph.output(static_cast<int>(i)), results[i]); !why.empty()) return why;
  }
  return node.op_type() == "Dropout" ? judge_dropout(node, feeds, results) : judge_bernoulli(node, feeds, results[0]);
}

}  // namespace attn_opt::testing
