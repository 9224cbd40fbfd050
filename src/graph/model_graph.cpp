#include <algorithm>

#include "attn_opt/graph.h"
#include "attn_opt/model.h"
#include "src/graph/graph_reader.h"

namespace attn_opt {
namespace {

/// Enters the numbers of KNOWN that DECLARED, of the same rank, leaves open.
void complete_sizes(const onnx::TypeProto& known, onnx::TypeProto& declared) {
  if (!declared.has_tensor_type() || !known.tensor_type().has_shape()) return;
  const onnx::TensorShapeProto& sizes = known.tensor_type().shape();
  onnx::TypeProto_Tensor& tensor = *declared.mutable_tensor_type();
  if (!tensor.has_shape()) *tensor.mutable_shape() = sizes;
  if (tensor.shape().dim_size() != sizes.dim_size()) return;
  for (int axis = 0; axis < sizes.dim_size(); ++axis) {
    auto& dim = *tensor.mutable_shape()->mutable_dim(axis);
    if (sizes.dim(axis).has_dim_value() && !dim.has_dim_value()) dim.set_dim_value(sizes.dim(axis).dim_value());
  }
}

}  // namespace

Value* Graph::find(std::string_view name) const {
  for (const Graph* graph = this; graph; graph = graph->parent_)
    if (Value* found = graph->find_own(name); found && !found->removed) return found;
  return nullptr;
}

Value* Graph::find_own(std::string_view name) const {
  Value* const* found = values_.find(name_hash(name), [&](const Value* value) { return value->name == name; });
  return found ? *found : nullptr;
}

bool Graph::enter(Value& value, size_t hash) {
  return values_.insert(hash, &value, [&](const Value* known) { return known->name == value.name; });
}

bool Value::is_stored() const { return initializer || (producer && producer->is("Constant")); }

const Graph& Graph::outermost() const {
  const Graph* graph = this;
  while (graph->parent_) graph = graph->parent_;
  return *graph;
}

Node* Graph::holder_of(const Node& node) const {
  auto* holder = const_cast<Node*>(&node);  // NOLINT(cppcoreguidelines-pro-type-const-cast): as owner() gives them
  while (holder && holder->graph != this) holder = holder->graph->owner();
  return holder;
}

bool Graph::sees(const Value& value) const {
  for (const Graph* graph = this; graph; graph = graph->parent_)
    if (value.graph == graph) return true;
  return false;
}

Expected<std::unique_ptr<ModelGraph>> ModelGraph::create(onnx::ModelProto& proto) {
  auto model = std::make_unique<ModelGraph>();
  model->proto_ = &proto;
  ATTN_OPT_CHECK(GraphReader(*model).read_model());
  model->set_edit_opset(kEditOpset);
  return model;
}

void ModelGraph::set_edit_opset(int opset) {
  constexpr int kFirstWithAttention = 23;
  const int own = opset_version(*proto_);
  const bool keeps = opset == kOwnOpset && own > 0;
  edit_opset_ = keeps ? own : std::max({opset, own, kFirstWithAttention});
}

int ModelGraph::opset(const Graph& graph, const std::string& domain) const {
  const onnx::FunctionProto* function = graph.outermost().function();
  if (!function) return opset_version(*proto_, domain);
  for (const auto& import : function->opset_import()) {
    const std::string& name = import.domain() == "ai.onnx" ? std::string() : import.domain();
    if (name == domain) return static_cast<int>(import.version());
  }
  return 0;
}

std::string ModelGraph::fresh_name(const std::string& stem) {
  if (take_name(stem)) return stem;
  int& suffix = next_suffix_[stem];
  for (;;) {
    std::string name = stem + "_" + std::to_string(++suffix);
    if (take_name(name)) return name;
  }
}

Value* ModelGraph::new_value(Graph& graph, const std::string& name) {
  Value& value = add_value(graph, name);
  value.is_new = true;
  return &value;
}

Value& ModelGraph::add_value(Graph& graph, std::string name) {
  Value& value = value_pool_.emplace_back(&memory_);
  value.name = std::move(name);
  value.graph = &graph;
  value.index = graph.value_count_++;
  return value;
}

Node& ModelGraph::add_node(Graph& graph) {
  Node& node = node_pool_.emplace_back(&memory_);
  node.id = static_cast<uint32_t>(node_pool_.size() - 1);
  node.graph = &graph;
  return node;
}

Node* ModelGraph::new_node(Graph& graph) {
  Node& node = add_node(graph);
  auto& proto = unlisted_protos_[&node];
  proto = std::make_unique<onnx::NodeProto>();
  node.proto = proto.get();
  node.placement = Placement::kUnplaced;
  return &node;
}

void ModelGraph::add_use(Value& value, Node* node, int input) {
  node->use_slots[input] = static_cast<uint32_t>(value.uses.size());
  value.uses.push_back({node, input});
}

void ModelGraph::drop_use(Node& node, int input) {
  auto& uses = node.inputs[input]->uses;
  const uint32_t slot = node.use_slots[input];
  uses[slot] = uses.back();
  if (uses[slot].node) uses[slot].node->use_slots[uses[slot].input] = slot;
  uses.pop_back();
}

void ModelGraph::link(Node& node, const Node& anchor) {
  node.name_operator();
  const Node* place = node.graph->holder_of(anchor);
  node.position = (place ? place : &anchor)->position;
  node.placement = Placement::kAdded;
  node.use_slots.assign(node.inputs.size(), 0);
  node.proto->clear_input();
  node.proto->clear_output();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    node.proto->add_input(node.inputs[i] ? node.inputs[i]->name : "");
    if (node.inputs[i]) add_use(*node.inputs[i], &node, static_cast<int>(i));
  }
  for (Value* value : node.outputs) {
    node.proto->add_output(value ? value->name : "");
    if (value) node.graph->enter(*value, name_hash(value->name));
  }
  node.graph->added_.push_back(&node);
  node.graph->changed_ = true;
}

void ModelGraph::raise(Node& node, const Node& anchor) {
  Graph& graph = *node.graph;
  const uint32_t to = anchor.position, from = node.position;
  const auto first = graph.nodes_.begin() + to, own = graph.nodes_.begin() + from;
  std::rotate(first, own, own + 1);
  for (uint32_t i = to; i <= from; ++i) graph.nodes_[i]->position = i;
  // What stands before ANCHOR stands above NODE too, which may read it; what stood before another node goes with that.
  for (Node* added : graph.added_)
    if (added->position > to && added->position <= from) ++added->position;
  graph.changed_ = true;
}

void ModelGraph::take_over(Value& value, Node& maker, int output) {
  if (Node* old = value.producer) {
    Value* unread = new_value(*old->graph, fresh_name(value.name + "_unfused"));
    unread->producer = old;
    unread->output = value.output;
    old->outputs[value.output] = unread;
    old->proto->set_output(value.output, unread->name);
    old->graph->enter(*unread, name_hash(unread->name));
  }
  if (Value* before = maker.outputs[output]) before->removed = true;
  maker.outputs[output] = &value;
  maker.proto->set_output(output, value.name);
  value.producer = &maker;
  value.output = output;
}

void ModelGraph::set_input(Node& node, int input, Value& value) {
  if (node.inputs[input]) drop_use(node, input);
  node.inputs[input] = &value;
  node.proto->set_input(input, value.name);
  add_use(value, &node, input);
}

void ModelGraph::declare(Value& value, onnx::TypeProto type) {
  if (!value.graph->proto_) return;
  if (value.declared_type) {
    if (!value.is_input && !value.is_output) complete_sizes(type, *value.declared_type);
    return;
  }
  auto* info = value.graph->proto_->add_value_info();
  info->set_name(value.name);
  value.declared_type = info->mutable_type();
  *value.declared_type = std::move(type);
}

}  // namespace attn_opt
