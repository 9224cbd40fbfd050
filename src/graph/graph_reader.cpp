#include "src/graph/graph_reader.h"

namespace attn_opt {
namespace {

constexpr int kMaxNesting = 64;

std::string quoted(const std::string& name) { return "'" + name + "'"; }

/// Why NAME, read by a node of GRAPH, is not there: made later, or never.
std::string why_missing(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, const std::string& name) {
  for (const auto& node : nodes)
    for (const auto& output : node.output())
      if (output == name) return quoted(name) + " is read before it is made: nodes are out of order or form a cycle";
  return quoted(name) + " is read but nothing makes it";
}

}  // namespace

Status GraphReader::read_model() {
  onnx::ModelProto& proto = model_.proto();
  ATTN_OPT_CHECK(read_graph(*new_graph(nullptr, nullptr), *proto.mutable_graph(), 0));
  for (auto& function : *proto.mutable_functions()) ATTN_OPT_CHECK(read_function(function));
  return {};
}

Graph* GraphReader::new_graph(Graph* parent, Node* owner) {
  model_.graphs_.emplace_back(new Graph);
  Graph* graph = model_.graphs_.back().get();
  graph->model_ = &model_;
  graph->parent_ = parent;
  graph->owner_ = owner;
  return graph;
}

Status GraphReader::read_function(onnx::FunctionProto& function) {
  Graph& graph = *new_graph(nullptr, nullptr);
  graph.function_ = &function;
  for (const auto& name : function.input()) {
    ATTN_OPT_TRY(Value * value, define(graph, name));
    value->is_input = true;
    graph.inputs_.push_back(value);
  }
  ATTN_OPT_CHECK(read_nodes(graph, *function.mutable_node(), 0));
  return connect_outputs(graph);
}

Status GraphReader::read_graph(Graph& graph, onnx::GraphProto& proto, int depth) {
  if (depth > kMaxNesting)
    return fail(ErrorCode::kLimit, graph.owner_->label(), "bodies nested deeper than " + std::to_string(kMaxNesting));
  graph.proto_ = &proto;
  for (const auto& input : proto.input()) {
    ATTN_OPT_TRY(Value * value, define(graph, input.name()));
    value->is_input = true;
    graph.inputs_.push_back(value);
  }
  // Before IR version 4 every initializer had to be listed as an input too, and stood for a constant.
  const bool inputs_override = model_.proto().ir_version() >= 4;
  for (const auto& tensor : proto.initializer()) {
    Value* known = graph.find_own(tensor.name());
    if (known && known->is_input) {
      if (!inputs_override) known->initializer = &tensor;
      continue;
    }
    ATTN_OPT_TRY(Value * value, define(graph, tensor.name()));
    value->initializer = &tensor;
  }
  for (const auto& tensor : proto.sparse_initializer())
    if (!graph.find_own(tensor.values().name())) {
      ATTN_OPT_TRY([[maybe_unused]] Value * value, define(graph, tensor.values().name()));
    }
  ATTN_OPT_CHECK(read_nodes(graph, *proto.mutable_node(), depth));
  declare_types(graph, proto);
  return connect_outputs(graph);
}

Status GraphReader::read_nodes(Graph& graph, google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, int depth) {
  graph.nodes_.reserve(nodes.size());
  graph.values_.reserve(graph.value_count_ + nodes.size());
  model_.taken_names_.reserve(graph.value_count_ + 2 * nodes.size());  // a node and its output have a name each
  for (auto& node : nodes) ATTN_OPT_CHECK(read_node(graph, node, depth));
  return {};
}

Status GraphReader::read_node(Graph& graph, onnx::NodeProto& proto, int depth) {
  Node& node = model_.add_node(graph);
  node.position = static_cast<uint32_t>(graph.nodes_.size());
  node.proto = &proto;
  node.name_operator();
  model_.take_name(proto.name());
  node.inputs.reserve(proto.input_size());
  node.use_slots.reserve(proto.input_size());
  node.outputs.reserve(proto.output_size());
  for (const auto& name : proto.input()) {
    Value* value = name.empty() ? nullptr : graph.find(name);
    if (!value && !name.empty())
      return fail(ErrorCode::kInvalidInput, "node '" + node.label() + "' (" + node.op() + ")",
                  why_missing(graph.proto_ ? graph.proto_->node() : graph.function_->node(), name));
    node.inputs.push_back(value);
    node.use_slots.push_back(0);
    if (value) model_.add_use(*value, &node, static_cast<int>(node.inputs.size()) - 1);
  }
  ATTN_OPT_CHECK(read_bodies(node, depth));
  for (const auto& name : proto.output()) {
    if (name.empty()) {
      node.outputs.push_back(nullptr);
      continue;
    }
    ATTN_OPT_TRY(Value * value, define(graph, name));
    value->producer = &node;
    value->output = static_cast<int>(node.outputs.size());
    node.outputs.push_back(value);
  }
  graph.nodes_.push_back(&node);
  return {};
}

Status GraphReader::read_bodies(Node& node, int depth) {
  auto read_body = [&](onnx::GraphProto& proto) -> Status {
    Graph* body = new_graph(node.graph, &node);
    node.bodies.push_back(body);
    return read_graph(*body, proto, depth + 1);
  };
  for (auto& attribute : *node.proto->mutable_attribute()) {
    if (attribute.has_g()) {
      ATTN_OPT_CHECK(read_body(*attribute.mutable_g()));
    }
    for (auto& proto : *attribute.mutable_graphs()) ATTN_OPT_CHECK(read_body(proto));
  }
  return {};
}

Status GraphReader::connect_outputs(Graph& graph) {
  auto connect = [&](const std::string& name) -> Status {
    Value* value = graph.find(name);
    if (!value) {
      const std::string where = graph.owner_ ? "body of '" + graph.owner_->label() + "'" : "graph";
      return fail(ErrorCode::kInvalidInput, where, "output " + quoted(name) + " is made by no node");
    }
    graph.outputs_.push_back(value);
    if (value->graph == &graph)
      value->is_output = true;
    else
      value->uses.push_back({});
    return {};
  };
  if (graph.proto_)
    for (const auto& output : graph.proto_->output()) ATTN_OPT_CHECK(connect(output.name()));
  else
    for (const auto& name : graph.function_->output()) ATTN_OPT_CHECK(connect(name));
  return {};
}

Expected<Value*> GraphReader::define(Graph& graph, const std::string& name) {
  Value& value = model_.add_value(graph, name);
  const size_t hash = name_hash(name);
  if (!graph.enter(value, hash)) return fail(ErrorCode::kInvalidInput, quoted(name), "is made twice in one graph");
  model_.take_name(hash);
  return &value;
}

void GraphReader::declare_types(Graph& graph, onnx::GraphProto& proto) {
  for (auto* infos : {proto.mutable_value_info(), proto.mutable_output(), proto.mutable_input()})
    for (auto& info : *infos) {
      Value* found = info.has_type() ? graph.find_own(info.name()) : nullptr;
      if (found) found->declared_type = info.mutable_type();
    }
}

}  // namespace attn_opt
