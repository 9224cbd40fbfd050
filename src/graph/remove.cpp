#include <algorithm>

#include "attn_opt/graph.h"

namespace attn_opt {
namespace {

/// Replaces FIELD's elements by ORDERED, which holds each kept element once. Elements are moved by pointer.
template <class Proto>
void replace_elements(google::protobuf::RepeatedPtrField<Proto>& field, const std::vector<Proto*>& ordered) {
  for (Proto* element : ordered) field.AddAllocated(element);
}

template <class Proto>
std::vector<Proto*> release_elements(google::protobuf::RepeatedPtrField<Proto>& field) {
  std::vector<Proto*> elements(field.size());
  if (!elements.empty()) field.ExtractSubrange(0, field.size(), elements.data());
  return elements;
}

/// Keeps the elements of FIELD for which GONE is false, in their order.
template <class Proto, class Predicate>
void erase_elements(google::protobuf::RepeatedPtrField<Proto>& field, Predicate gone) {
  std::vector<Proto*> kept;
  for (Proto* element : release_elements(field)) {
    if (gone(*element))
      delete element;
    else
      kept.push_back(element);
  }
  replace_elements(field, kept);
}

bool inside_removed(const Graph& graph) {
  for (const Graph* g = &graph; g; g = g->parent())
    if (g->owner() && g->owner()->removed) return true;
  return false;
}

bool names(const onnx::TensorAnnotation& annotation, const std::string& name) {
  return std::ranges::any_of(annotation.quant_parameter_tensor_names(),
                             [&](const onnx::StringStringEntryProto& entry) { return entry.value() == name; });
}

/// True if an annotation of VALUE's graph names it, as the scale or the zero point of a tensor: a reader that no node is.
/// Most models have none, and the walk that asks is short: it stays out of it.
[[gnu::noinline]] bool is_annotation(const Value& value) {
  const onnx::GraphProto* graph = value.graph->proto();
  if (!graph || graph->quantization_annotation().empty()) return false;
  return std::ranges::any_of(graph->quantization_annotation(),
                             [&](const auto& annotation) { return names(annotation, value.name); });
}

/// True of operators that do nothing but make their outputs.
bool is_known_domain(std::string_view domain) { return domain.empty() || domain == "com.microsoft"; }

}  // namespace

void ModelGraph::remove_if_dead(Node& first) {
  std::vector<Node*> pending{&first};
  while (!pending.empty()) {
    Node& node = *pending.back();
    pending.pop_back();
    if (!node.removed && node.is_dead()) remove(node, pending);
  }
}

void ModelGraph::remove_dead() {
  std::vector<Node*> above;  // what a removed node read stands above it, and is asked in its turn
  for (auto graph = graphs_.rbegin(); graph != graphs_.rend(); ++graph)
    for (auto node = (*graph)->nodes_.rbegin(); node != (*graph)->nodes_.rend(); ++node)
      if ((*node)->is_dead() && (*node)->bodies.empty() && is_known_domain((*node)->domain())) remove(**node, above);
}

void ModelGraph::remove(Node& node, std::vector<Node*>& pending) {
  node.removed = true;
  node.graph->changed_ = true;
  for (Graph* body : node.bodies) {
    for (const auto* nodes : {&body->nodes_, &body->added_})
      for (Node* inner : *nodes)
        if (!inner->removed) remove(*inner, pending);
    for (Value* output : body->outputs_) {
      if (output->graph == body) continue;
      auto& uses = output->uses;
      auto use = std::ranges::find_if(uses, [](const Use& u) { return !u.node; });
      if (use == uses.end()) continue;
      *use = uses.back();
      if (use->node) use->node->use_slots[use->input] = static_cast<uint32_t>(use - uses.begin());
      uses.pop_back();
      drop_unread(*output, pending);
    }
  }
  for (Value* value : node.outputs)
    if (value) value->removed = true;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i]) continue;
    drop_use(node, static_cast<int>(i));
    drop_unread(*node.inputs[i], pending);
    node.inputs[i] = nullptr;
  }
}

void ModelGraph::drop_unread(Value& value, std::vector<Node*>& pending) {
  if (!value.unused()) return;
  if (value.producer)
    pending.push_back(value.producer);
  else if (value.initializer && !value.is_input && !is_annotation(value)) {
    removed_initializers_.insert(value.initializer);
    value.removed = true;
    value.graph->changed_ = true;
  }
}

void ModelGraph::compact() {
  // Inner graphs first: removing an outer node destroys the protos of its bodies.
  for (auto graph = graphs_.rbegin(); graph != graphs_.rend(); ++graph) {
    Graph& g = **graph;
    if (!g.changed_ || inside_removed(g)) continue;
    auto& field = g.proto_ ? *g.proto_->mutable_node() : *g.function_->mutable_node();
    for (Node* node : g.added_) {
      node->proto = unlisted_protos_.at(node).release();
      unlisted_protos_.erase(node);
    }
    release_elements(field);
    const std::vector<Node*> order = in_order(g);
    g.nodes_.clear();
    for (Node* node : order) {
      if (node->removed) {
        delete node->proto;
        node->proto = nullptr;
        continue;
      }
      node->position = static_cast<uint32_t>(g.nodes_.size());
      g.nodes_.push_back(node);
      field.AddAllocated(node->proto);
    }
    g.added_.clear();
    if (g.proto_) {
      erase_elements(*g.proto_->mutable_initializer(),
                     [&](const onnx::TensorProto& t) { return removed_initializers_.count(&t) > 0; });
      erase_elements(*g.proto_->mutable_value_info(), [&](const onnx::ValueInfoProto& info) {
        const Value* value = g.find_own(info.name());
        return value && value->removed;
      });
    }
    g.changed_ = false;
  }
}

}  // namespace attn_opt
