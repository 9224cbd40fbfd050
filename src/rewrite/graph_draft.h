// A graph of a model that is being made: the main graph, a body or a function.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "attn_opt/graph_builder.h"
#include "src/rewrite/builder_backend.h"
#include "src/rewrite/model_draft.h"

namespace attn_opt {

class GraphDraft : public BuilderBackend {
 public:
  /// The main graph of a new model, which lives as long as that.
  static std::shared_ptr<GraphDraft> of_model(const BuilderOptions& options);
  GraphDraft& body(const std::string& name);
  GraphDraft& function(const std::string& domain, const std::string& name, const Attributes& defaults);

  ModelGraph& view() const override { return model_.view(); }
  Graph& graph() const override { return model_.view().main(); }
  Value* made(const std::string& key) const override;
  void keep(const std::string& key, Value& value) override { made_.emplace(key, &value); }
  bool place(Node& node) override;
  GraphDraft* draft() override { return this; }

  Value* input(const std::string& name, const onnx::TypeProto& type);
  Value* initializer(const std::string& name, const Tensor& tensor);
  void output(Value& value, const std::string& name);
  void declare(Value& value, const onnx::TypeProto& type);
  /// True if the value is to be copied before it can be an output.
  bool is_copied_as_output(const Value& value) const;
  /// True if a node of this graph can read VALUE; otherwise an error at WHERE.
  bool sees(const Value& value, const std::string& where);

  /// Inputs, initializers, nodes and outputs as they are now.
  void write(onnx::GraphProto& graph) const;
  /// The body as it is now; nothing can be added from now on.
  onnx::GraphProto finish_body();
  /// Enters the function into the model; nothing can be added from now on.
  void finish_function();

  ModelDraft& model() const { return model_; }

 private:
  enum class Kind { kMain, kBody, kFunction };
  GraphDraft(ModelDraft& model, GraphDraft* around, Kind kind, std::string name)
      : model_(model), around_(around), kind_(kind), name_(std::move(name)) {}

  std::string where() const;  ///< "graph 'main'"
  std::string where(const Node& node) const;
  bool is_open(const std::string& where);
  std::string where(const std::string& kind, const std::string& name) const;
  const GraphDraft& outermost() const;
  /// True in a function and its bodies: types are the call's.
  bool has_no_types() const { return outermost().kind_ == Kind::kFunction; }
  bool is_called_by(const onnx::NodeProto& call) const;
  Value& new_value(const std::string& name);
  /// NAME in the main graph, where it must be free for WHAT, and elsewhere a free one like it.
  std::string taken_name(const std::string& name, const std::string& what);
  Status check(Node& node);
  Status infer(Node& node);

  ModelDraft& model_;
  GraphDraft* around_;
  Kind kind_;
  std::string name_;
  onnx::FunctionProto function_;
  bool finished_ = false;
  std::vector<Value*> inputs_, outputs_, values_;  ///< the last: of nodes
  NewNames wanted_names_;                          ///< of a function's inputs and outputs
  std::vector<Node*> nodes_;
  std::vector<Value*> initializers_;
  std::vector<std::shared_ptr<const onnx::TensorProto>> contents_;  ///< of initializers
  std::unordered_map<std::string, Value*> made_;
};

}  // namespace attn_opt
