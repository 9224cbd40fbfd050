#include "src/io/node_order.h"

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

/// False if a value is made below a node that reads one of its name: nearly all graphs are sorted, and this is soon said of them.
bool is_plainly_sorted(const Nodes& nodes) {
  NameTable<std::string_view> names;  // read or made so far
  const auto add = [&names](std::string_view name) {
    return names.insert(name_hash(name), name, [name](std::string_view known) { return known == name; });
  };
  for (const auto& node : nodes) {
    for_each_read(node, [&add](std::string_view name) { add(name); });
    for (const auto& name : node.output())
      if (!name.empty() && !add(name)) return false;
  }
  return true;
}

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

void sort(Nodes& nodes) {
  if (is_plainly_sorted(nodes)) return;
  const Makers makers = makers_of(nodes);
  const std::vector<int> order = sorted_order(nodes, makers);
  if (static_cast<int>(order.size()) != nodes.size()) return;
  std::vector<onnx::NodeProto*> taken(order.size());
  nodes.ExtractSubrange(0, nodes.size(), taken.data());
  for (const int node : order) nodes.AddAllocated(taken[static_cast<size_t>(node)]);
}

void sort_bodies(Nodes& nodes) {
  const auto sort_body = [](onnx::GraphProto& body) {
    sort_bodies(*body.mutable_node());
    sort(*body.mutable_node());
  };
  for (auto& node : nodes)
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) sort_body(*attribute.mutable_g());
      for (auto& body : *attribute.mutable_graphs()) sort_body(body);
    }
}

}  // namespace

void sort_nodes(onnx::ModelProto& model) {
  sort_bodies(*model.mutable_graph()->mutable_node());
  sort(*model.mutable_graph()->mutable_node());
  for (auto& function : *model.mutable_functions()) {
    sort_bodies(*function.mutable_node());
    sort(*function.mutable_node());
  }
}

}  // namespace attn_opt
