#include "attn_opt/internal/model_walk.h"

#include <type_traits>
#include <vector>

namespace attn_opt {
namespace {

// MESSAGE's field NAME, mutable if MESSAGE is: const messages must not be touched, other threads may read them.
#define FIELD(message, name)                                             \
  [](auto& m) -> auto& {                                                 \
    if constexpr (std::is_const_v<std::remove_reference_t<decltype(m)>>) \
      return m.name();                                                   \
    else                                                                 \
      return *m.mutable_##name();                                        \
  }(message)

/// Model is onnx::ModelProto or const onnx::ModelProto. Visitors may be empty.
template <class Model>
class Walk {
  template <class Message>
  using Like = std::conditional_t<std::is_const_v<Model>, const Message, Message>;
  using Graph = Like<onnx::GraphProto>;
  using Node = Like<onnx::NodeProto>;
  using Tensor = Like<onnx::TensorProto>;

 public:
  std::function<void(Graph&)> on_graph;
  std::function<void(Node&)> on_node;
  std::function<void(Tensor&)> on_tensor;

  void run(Model& model) {
    if (model.has_graph()) pending_.push_back(&FIELD(model, graph));
    for (auto& training : FIELD(model, training_info)) {
      if (training.has_initialization()) pending_.push_back(&FIELD(training, initialization));
      if (training.has_algorithm()) pending_.push_back(&FIELD(training, algorithm));
    }
    for (auto& function : FIELD(model, functions)) walk_function(function);
    walk_pending();
  }

  void run(Like<onnx::FunctionProto>& function) {
    walk_function(function);
    walk_pending();
  }

 private:
  void walk_pending() {
    for (size_t i = 0; i < pending_.size(); ++i) walk_graph(*pending_[i]);
  }

  void walk_function(Like<onnx::FunctionProto>& function) {
    for (auto& attribute : FIELD(function, attribute_proto)) walk_attribute(attribute);
    for (auto& node : FIELD(function, node)) walk_node(node);
  }

  void walk_graph(Graph& graph) {
    if (on_graph) on_graph(graph);
    for (auto& tensor : FIELD(graph, initializer)) walk_tensor(tensor);
    for (auto& sparse : FIELD(graph, sparse_initializer)) walk_sparse(sparse);
    for (auto& node : FIELD(graph, node)) walk_node(node);
  }

  void walk_node(Node& node) {
    if (on_node) on_node(node);
    for (auto& attribute : FIELD(node, attribute)) walk_attribute(attribute);
  }

  void walk_attribute(Like<onnx::AttributeProto>& attribute) {
    if (attribute.has_t()) walk_tensor(FIELD(attribute, t));
    for (auto& tensor : FIELD(attribute, tensors)) walk_tensor(tensor);
    if (attribute.has_sparse_tensor()) walk_sparse(FIELD(attribute, sparse_tensor));
    for (auto& sparse : FIELD(attribute, sparse_tensors)) walk_sparse(sparse);
    if (attribute.has_g()) pending_.push_back(&FIELD(attribute, g));
    for (auto& graph : FIELD(attribute, graphs)) pending_.push_back(&graph);
  }

  void walk_sparse(Like<onnx::SparseTensorProto>& sparse) {
    if (sparse.has_values()) walk_tensor(FIELD(sparse, values));
    if (sparse.has_indices()) walk_tensor(FIELD(sparse, indices));
  }

  void walk_tensor(Tensor& tensor) {
    if (on_tensor) on_tensor(tensor);
  }

  std::vector<Graph*> pending_;
};
#undef FIELD

template <class Model, class Visitor>
void walk_graphs(Model& model, const Visitor& visit) {
  Walk<Model> walk;
  walk.on_graph = visit;
  walk.run(model);
}

template <class Model, class Visitor>
void walk_nodes(Model& model, const Visitor& visit) {
  Walk<Model> walk;
  walk.on_node = visit;
  walk.run(model);
}

template <class Model, class Visitor>
void walk_tensors(Model& model, const Visitor& visit) {
  Walk<Model> walk;
  walk.on_tensor = visit;
  walk.run(model);
}

}  // namespace

void for_each_graph(const onnx::ModelProto& model, const std::function<void(const onnx::GraphProto&)>& visit) {
  walk_graphs(model, visit);
}
void for_each_graph(onnx::ModelProto& model, const std::function<void(onnx::GraphProto&)>& visit) { walk_graphs(model, visit); }

void for_each_node(const onnx::ModelProto& model, const std::function<void(const onnx::NodeProto&)>& visit) {
  walk_nodes(model, visit);
}
void for_each_node(onnx::ModelProto& model, const std::function<void(onnx::NodeProto&)>& visit) { walk_nodes(model, visit); }

void for_each_node(const onnx::FunctionProto& function, const std::function<void(const onnx::NodeProto&)>& visit) {
  Walk<const onnx::ModelProto> walk;
  walk.on_node = visit;
  walk.run(function);
}
void for_each_node(onnx::FunctionProto& function, const std::function<void(onnx::NodeProto&)>& visit) {
  Walk<onnx::ModelProto> walk;
  walk.on_node = visit;
  walk.run(function);
}

void for_each_tensor(const onnx::ModelProto& model, const std::function<void(const onnx::TensorProto&)>& visit) {
  walk_tensors(model, visit);
}
void for_each_tensor(onnx::ModelProto& model, const std::function<void(onnx::TensorProto&)>& visit) {
  walk_tensors(model, visit);
}

}  // namespace attn_opt
