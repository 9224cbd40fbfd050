#include "src/cli/commands/print_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "src/trial/tensor_difference.h"

namespace attn_opt {
namespace {

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
    text = fmt::format("  min {:.6g}  max {:.6g}  mean {:.6g}", least, most, sum / static_cast<double>(counted));
  }
  return nans == 0 ? text : text + fmt::format("  NaN {}", nans);
}

/// "float32 (2, 3)  min ...", "sequence of 2", "empty".
std::string description_of(const Tensor& value) {
  if (value.is_empty_optional()) return "empty";
  if (value.is_sequence()) return fmt::format("sequence of {}", value.elements().size());
  return type_name(value.type()) + " " + to_string(value.dims()) + range_of(value);
}

}  // namespace

void print_outputs(const onnx::GraphProto& graph, const std::vector<Tensor>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string line = graph.output(static_cast<int>(i)).name() + "  " + description_of(outputs[i]) + "\n";
    std::fputs(line.c_str(), stdout);
  }
}

}  // namespace attn_opt
