// A model that is being made: what its main graph, bodies and functions share.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "attn_opt/graph_builder.h"
#include "src/rewrite/type_inference.h"
#include "src/rewrite/value_names.h"

namespace attn_opt {

class GraphDraft;

class ModelDraft {
 public:
  explicit ModelDraft(const BuilderOptions& options);
  ~ModelDraft();

  /// GRAPH lives as long as the model; the first one is the main graph.
  GraphDraft& add(std::unique_ptr<GraphDraft> graph);
  /// As GraphBuilder::model().
  Expected<Model> whole();

  ModelGraph& view() const { return *view_; }
  onnx::ModelProto& proto() { return proto_; }
  TypeInference& types() { return types_; }

  /// Keeps the first error.
  void fail(Error error);
  const std::optional<Error>& error() const { return error_; }
  void forget_error() { error_.reset(); }

  /// NAME, if nothing of the model is called so; otherwise an error.
  bool take_name(const std::string& name, const std::string& what);
  /// VALUE is called NAME from now on, also where the nodes that were made before mention it.
  void rename(Value& value, const std::string& name);
  const NewNames& new_names() const { return new_names_; }
  void set_type(Value& value, const onnx::TypeProto& type) { value.declared_type = types_.set_type(value.name, type); }
  void own(const Value& value, const GraphDraft& graph) { graph_of_[&value] = &graph; }
  /// Null for a value of another model.
  const GraphDraft* graph_of(const Value& value) const;

  /// The version that OP's domain is imported at; 0, and an error at WHERE, if it is not.
  int version_of(const std::string& domain, const std::string& where);
  void import_opset(const std::string& domain, int version);

  /// The functions that no node has called yet, "domain::Name".
  std::map<std::string, GraphDraft*>& open_functions() { return open_functions_; }
  /// Null if there is none, or it can still be added to.
  const onnx::FunctionProto* function(const std::string& domain, const std::string& name);
  /// The function that CALL calls, which is finished with that; null if there is none.
  const onnx::FunctionProto* called(const onnx::NodeProto& call);

 private:
  onnx::ModelProto proto_;
  std::unique_ptr<ModelGraph> view_;
  TypeInference types_;
  std::optional<Error> error_;
  NewNames new_names_;
  std::vector<std::unique_ptr<GraphDraft>> graphs_;
  std::unordered_map<const Value*, const GraphDraft*> graph_of_;
  std::map<std::string, GraphDraft*> open_functions_;
};

}  // namespace attn_opt
