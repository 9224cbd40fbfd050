#include "src/verify/read_nodes.h"

#include <algorithm>
#include <unordered_set>

#include "attn_opt/edit.h"

namespace attn_opt {
namespace {

constexpr const char* kReadDomain = "attn_opt.as_read";

/// Enters what NODE's graphs read and none of them makes into NAMES, after its inputs.
void add_reads(const onnx::NodeProto& node, const std::unordered_set<std::string>& made_outside,
               std::vector<std::string>& names) {
  const auto add = [&](const std::string& name) {
    if (!name.empty() && !made_outside.count(name) && std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const auto& input : node.input()) add(input);
  const auto add_graph = [&](const onnx::GraphProto& graph) {
    std::unordered_set<std::string> made = made_outside;
    for (const auto& input : graph.input()) made.insert(input.name());
    for (const auto& tensor : graph.initializer()) made.insert(tensor.name());
    for (const auto& tensor : graph.sparse_initializer()) made.insert(tensor.values().name());
    for (const auto& inner : graph.node()) {
      add_reads(inner, made, names);
      made.insert(inner.output().begin(), inner.output().end());
    }
    for (const auto& output : graph.output())
      if (!made.count(output.name())) add(output.name());
  };
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) add_graph(attribute.g());
    for (const auto& graph : attribute.graphs()) add_graph(graph);
  }
}

/// A function of NODE alone; it takes the attributes of AROUND, the function that NODE stands in.
onnx::FunctionProto function_of(const onnx::NodeProto& node, const onnx::FunctionProto& around, const std::string& name,
                                const std::vector<std::string>& reads) {
  onnx::FunctionProto function;
  function.set_domain(kReadDomain);
  function.set_name(name);
  *function.mutable_opset_import() = around.opset_import();
  *function.mutable_attribute() = around.attribute();
  *function.mutable_attribute_proto() = around.attribute_proto();
  for (const std::string& read : reads) function.add_input(read);
  for (const auto& output : node.output())
    if (!output.empty()) function.add_output(output);
  *function.add_node() = node;
  return function;
}

/// A call of FUNCTION with the attributes of CALL.
onnx::NodeProto call_of(const onnx::FunctionProto& function, const onnx::NodeProto& call) {
  onnx::NodeProto node;
  node.set_domain(function.domain());
  node.set_op_type(function.name());
  node.set_name(call.name());
  *node.mutable_input() = function.input();
  *node.mutable_output() = function.output();
  *node.mutable_attribute() = call.attribute();
  return node;
}

bool has_graphs(const onnx::NodeProto& node) {
  return std::ranges::any_of(
      node.attribute(), [](const onnx::AttributeProto& attribute) { return attribute.has_g() || attribute.graphs_size(); });
}

}  // namespace

void ReadNodes::add_called(const onnx::NodeProto& node, onnx::ModelProto& model) const {
  if (const onnx::FunctionProto* function = calls_->function_of(node)) {
    enter_function(*function, model);
    for (const auto& inner : function->node()) add_called(inner, model);
  }
  for (const auto& attribute : node.attribute()) {
    for (const auto& inner : attribute.g().node()) add_called(inner, model);
    for (const auto& graph : attribute.graphs())
      for (const auto& inner : graph.node()) add_called(inner, model);
  }
}

const InlinedCalls::Origin* ReadNodes::origin(const Node& node) const {
  return calls_ && node.placement == Placement::kOfFile ? calls_->origin(*node.proto) : nullptr;
}

bool ReadNodes::takes_attributes(const Node& node) const {
  const auto* from = origin(node);
  return from && InlinedCalls::takes_attributes(*from);
}

std::string ReadNodes::wiring_fault(const std::vector<Node*>& nodes) const {
  for (const Node* node : nodes) {
    const auto* from = origin(*node);
    if (!from) continue;
    std::vector<std::string> wanted{from->handed_through};
    if (from->node) wanted.assign(from->node->input().begin(), from->node->input().end());
    for (size_t i = 0; i < std::max(wanted.size(), node->inputs.size()); ++i) {
      const std::string reads = node->input(i) ? node->input(i)->name : "";
      const std::string should = i < wanted.size() ? calls_->resolved(from->scope, wanted[i]) : "";
      if (reads != should)
        return "'" + node->label() + "' reads '" + reads + "' where the model that was read has '" + should + "'";
    }
  }
  return {};
}

std::string ReadNodes::text(const Node& node) const {
  const auto* from = origin(node);
  if (!from || !from->node) return {};
  std::string text;
  for (const auto& attribute : from->node->attribute()) text += attribute.SerializeAsString();
  for (const auto* call = calls_->call_around(from->scope); call; call = calls_->call_around(call->outer)) {
    text += '\n';
    for (const auto& attribute : call->call->attribute()) text += attribute.SerializeAsString();
    for (const auto& attribute : call->function->attribute_proto()) text += attribute.SerializeAsString();
  }
  return text;
}

void ReadNodes::restore(const std::vector<Node*>& nodes, onnx::ModelProto& model) const {
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto* from = origin(*nodes[i]);
    if (!from || !from->node) continue;
    onnx::NodeProto& written = *model.mutable_graph()->mutable_node(static_cast<int>(i));
    std::vector<std::string> reads;
    add_reads(*from->node, {}, reads);
    onnx::NodeProto read = *from->node;
    int depth = 0;
    // One that holds no graphs and takes no attributes is the same in every call.
    const bool is_plain = !has_graphs(*from->node) && !InlinedCalls::takes_attributes(*from);
    add_called(*from->node, model);
    for (const auto* call = calls_->call_around(from->scope); call && !is_plain; call = calls_->call_around(call->outer)) {
      const std::string name = "Node" + std::to_string(i) + "_" + std::to_string(depth++);
      const onnx::FunctionProto function = function_of(read, *call->function, name, reads);
      enter_function(function, model);
      read = call_of(function, *call->call);
    }
    for (auto& input : *read.mutable_input()) input = calls_->resolved(from->scope, input);
    read.clear_output();
    // The node itself leaves out outputs by their place, a function of it does not have them.
    for (const auto& output : written.output())
      if (depth == 0 || !output.empty()) read.add_output(output);
    written = std::move(read);
  }
}

}  // namespace attn_opt
