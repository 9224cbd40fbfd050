#include "src/io/check/node_order.h"

#include <cstddef>
#include <functional>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "attn_opt/name_table.h"

namespace attn_opt {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
using Makers = std::unordered_map<std::string_view, int>;  // the node that makes a value, by the value's name

/// Calls READ for every name that NODE, or a body of it, reads. Bodies nest no deeper than the parser allows.
template <class Read>
void for_each_read(const onnx::NodeProto& node, const Read& read) {
  for (const auto& name : node.input()) read(name);
  const auto read_body = [&read](const onnx::GraphProto& body) {
    for (const auto& inner : body.node()) for_each_read(inner, read);
    for (const auto& output : body.output()) read(output.name());
  };
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) read_body(attribute.g());
    for (const auto& body : attribute.graphs()) read_body(body);
  }
}

Makers makers_of(const Nodes& nodes) {
  Makers makers;
  makers.reserve(static_cast<size_t>(nodes.size()));
  for (int i = 0; i < nodes.size(); ++i)
    for (const auto& name : nodes[i].output())
      if (!name.empty()) makers.emplace(name, i);
  return makers;
}

/// Told of one node after the other, knows whether a value is made below a node that reads one of its name: nearly all
/// graphs are sorted, and this is soon said of them.
class PlainOrder {
 public:
  explicit PlainOrder(int nodes) { names_.reserve(static_cast<size_t>(nodes)); }

  void add(const onnx::NodeProto& node) {
    for_each_read(node, [this](std::string_view name) { add(name); });
    for (const auto& name : node.output())
      if (!name.empty() && !add(name)) is_sorted_ = false;
  }
  bool is_sorted() const { return is_sorted_; }

 private:
  bool add(std::string_view name) {
    return names_.insert(name_hash(name), name, [name](std::string_view known) { return known == name; });
  }

  NameTable<std::string_view> names_;  ///< read or made so far
  bool is_sorted_ = true;
};

/// The order in which every node follows those that it reads, of those that could be next the first; short if there is none.
std::vector<int> sorted_order(const Nodes& nodes, const Makers& makers) {
  std::vector<std::vector<int>> readers(static_cast<size_t>(nodes.size()));
  std::vector<int> awaited(static_cast<size_t>(nodes.size()), 0);
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < nodes.size(); ++i) {
    for_each_read(nodes[i], [&](std::string_view name) {
      const auto maker = makers.find(name);
      if (maker == makers.end()) return;
      readers[static_cast<size_t>(maker->second)].push_back(i);
      ++awaited[static_cast<size_t>(i)];
    });
    if (awaited[static_cast<size_t>(i)] == 0) ready.push(i);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int next = ready.top();
    ready.pop();
    order.push_back(next);
    for (const int reader : readers[static_cast<size_t>(next)])
      if (--awaited[static_cast<size_t>(reader)] == 0) ready.push(reader);
  }
  return order;
}

void reorder(Nodes& nodes) {
  const Makers makers = makers_of(nodes);
  const std::vector<int> order = sorted_order(nodes, makers);
  if (static_cast<int>(order.size()) != nodes.size()) return;
  std::vector<onnx::NodeProto*> taken(order.size());
  nodes.ExtractSubrange(0, nodes.size(), taken.data());
  for (const int node : order) nodes.AddAllocated(taken[static_cast<size_t>(node)]);
}

/// Bodies first: what they read does not depend on their order.
void sort(Nodes& nodes) {
  PlainOrder order(nodes.size());
  for (auto& node : nodes) {
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) sort(*attribute.mutable_g()->mutable_node());
      for (auto& body : *attribute.mutable_graphs()) sort(*body.mutable_node());
    }
    order.add(node);
  }
  if (!order.is_sorted()) reorder(nodes);
}

}  // namespace

void sort_nodes(onnx::ModelProto& model) {
  sort(*model.mutable_graph()->mutable_node());
  for (auto& function : *model.mutable_functions()) sort(*function.mutable_node());
}

}  // namespace attn_opt
