#include "src/optimizer/operator_counts.h"

#include <algorithm>
#include <deque>
#include <numeric>

#include "attn_opt/internal/model_walk.h"
#include "attn_opt/name_table.h"
#include "attn_opt/tensor.h"
#include "src/graph/operator_name.h"

namespace attn_opt {

OperatorCounts count_operators(const onnx::ModelProto& model) {
  struct Counted {
    const onnx::NodeProto* first;
    int count;
  };
  std::deque<Counted> counted;
  NameTable<Counted*> by_name;
  for_each_node(model, [&](const onnx::NodeProto& node) {
    const auto is_same = [&node](const Counted* known) {
      return known->first->op_type() == node.op_type() && known->first->domain() == node.domain();
    };
    const size_t hash = name_hash(node.op_type());
    if (const auto known = by_name.find(hash, is_same)) {
      ++(*known)->count;
      return;
    }
    counted.push_back({&node, 1});
    by_name.insert(hash, &counted.back(), is_same);
  });
  OperatorCounts counts;
  for (const auto& [node, count] : counted)
    counts[is_onnx(node->domain()) ? node->op_type() : node->domain() + "::" + node->op_type()] += count;
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

void enter_attention_nodes(const OperatorCounts& before, Report& report) {
  for (const std::string_view op : kAttentionOperators) {
    const auto found = before.find(op);
    if (found == before.end()) continue;
    const auto sites = std::ranges::count_if(report.sites, [op](const SiteReport& site) { return site.op == op; });
    report.attention_nodes += std::max(0, found->second - static_cast<int>(sites));
  }
}

}  // namespace attn_opt
