// What GraphBuilder does for models from nothing.
#include "src/rewrite/graph_draft.h"

namespace attn_opt {
namespace {

Error no_draft(const std::string& wanted) {
  return {ErrorCode::kUsage, wanted, "nodes of an existing model are being made",
          "only a builder of a model from nothing has it"};
}

}  // namespace

Attribute::Attribute(std::string name, const GraphBuilder& body) {
  proto_.set_name(std::move(name));
  proto_.set_type(onnx::AttributeProto::GRAPH);
  if (GraphDraft* graph = body.draft("a body")) *proto_.mutable_g() = graph->finish_body();
}

GraphBuilder::GraphBuilder(const BuilderOptions& options) : GraphBuilder(GraphDraft::of_model(options)) {}

GraphDraft* GraphBuilder::draft(const char* wanted) const {
  GraphDraft* graph = backend_->draft();
  if (!graph && !misuse_) misuse_ = no_draft(wanted);
  return graph;
}

Value* GraphBuilder::input(const std::string& name, DataType type, const AxisSizes& sizes) {
  return input(name, tensor_type(type, sizes));
}

Value* GraphBuilder::input(const std::string& name, const onnx::TypeProto& type) {
  GraphDraft* graph = draft("input()");
  return graph ? graph->input(name, type) : nullptr;
}

Value* GraphBuilder::initializer(const std::string& name, const Tensor& tensor) {
  GraphDraft* graph = draft("initializer()");
  return graph ? graph->initializer(name, tensor) : nullptr;
}

Value* GraphBuilder::output(const std::string& name, Value* value) {
  GraphDraft* graph = draft("output()");
  if (!graph || !value) return value;
  if (graph->is_copied_as_output(*value)) value = new_node("Identity", {value}, {true})->outputs[0];
  graph->output(*value, name);
  return value;
}

void GraphBuilder::declare(Value* value, const onnx::TypeProto& type) {
  GraphDraft* graph = draft("declare()");
  if (graph && value) graph->declare(*value, type);
}

GraphBuilder GraphBuilder::body(const std::string& name) {
  GraphDraft* graph = draft("body()");
  return graph ? GraphBuilder(std::shared_ptr<BuilderBackend>(backend_, &graph->body(name))) : *this;
}

GraphBuilder GraphBuilder::function(const std::string& domain, const std::string& name, const Attributes& defaults) {
  GraphDraft* graph = draft("function()");
  return graph ? GraphBuilder(std::shared_ptr<BuilderBackend>(backend_, &graph->function(domain, name, defaults))) : *this;
}

void GraphBuilder::import_opset(const std::string& domain, int version) {
  if (GraphDraft* graph = draft("import_opset()")) graph->model().import_opset(domain, version);
}

void GraphBuilder::set_metadata(const std::string& key, const std::string& value) {
  GraphDraft* graph = draft("set_metadata()");
  if (!graph) return;
  auto* entry = graph->model().proto().add_metadata_props();
  entry->set_key(key);
  entry->set_value(value);
}

Status GraphBuilder::status() const {
  GraphDraft* graph = backend_->draft();
  const auto& error = graph ? graph->model().error() : misuse_;
  return error ? Status(tl::unexpected<Error>(*error)) : Status();
}

Status GraphBuilder::take_status() {
  Status taken = status();
  misuse_.reset();
  if (GraphDraft* graph = backend_->draft()) graph->model().forget_error();
  return taken;
}

Expected<Model> GraphBuilder::model() const {
  if (GraphDraft* graph = draft("model()")) return graph->model().whole();
  return tl::unexpected<Error>(*misuse_);
}

}  // namespace attn_opt
