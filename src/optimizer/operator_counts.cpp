#include "src/optimizer/operator_counts.h"

#include <algorithm>
#include <numeric>

#include "attn_opt/model_walk.h"
#include "attn_opt/tensor.h"
#include "src/graph/operator_name.h"

namespace attn_opt {

OperatorCounts count_operators(const onnx::ModelProto& model) {
  OperatorCounts counts;
  for_each_node(model, [&](const onnx::NodeProto& node) {
    const bool standard = is_onnx(node.domain());
    if (!standard)
      ++counts[node.domain() + "::" + node.op_type()];
    else if (const auto known = counts.find(std::string_view(node.op_type())); known != counts.end())
      ++known->second;
    else
      counts.emplace(node.op_type(), 1);
  });
  return counts;
}

int64_t weight_bytes_of(const onnx::ModelProto& model) {
  double bytes = 0;  // a few wrong sizes must not overflow
  for_each_tensor(model, [&bytes](const onnx::TensorProto& tensor) {
    const int64_t count = element_count({tensor.dims().data(), static_cast<size_t>(tensor.dims_size())});
    const auto type = static_cast<DataType>(tensor.data_type());
    if (count > 0) bytes += static_cast<double>(count) * static_cast<double>(element_size(type));
  });
  constexpr double kMost = 9e15;
  return static_cast<int64_t>(std::min(bytes, kMost));
}

void enter_counts(const OperatorCounts& before, const OperatorCounts& after, Report& report) {
  const auto total = [](const OperatorCounts& counts) {
    return std::accumulate(counts.begin(), counts.end(), 0, [](int sum, const auto& count) { return sum + count.second; });
  };
  report.nodes_before = total(before);
  report.nodes_after = total(after);
  OperatorCounts all = before;
  all.insert(after.begin(), after.end());
  for (const auto& [op, unused] : all) {
    const auto was = before.find(op), is = after.find(op);
    const OperatorCount count{op, was == before.end() ? 0 : was->second, is == after.end() ? 0 : is->second};
    if (count.before != count.after) report.operators.push_back(count);
  }
}

}  // namespace attn_opt
