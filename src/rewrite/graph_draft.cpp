#include "src/rewrite/graph_draft.h"

#include <algorithm>
#include <iterator>

#include "src/rewrite/operator_check.h"
#include "src/rewrite/value_types.h"

namespace attn_opt {
namespace {

/// "x float32[batch, 4], y int64[2]".
std::string types_text(const Node& node) {
  std::string text;
  for (const Value* input : node.inputs)
    if (input) text += (text.empty() ? "" : ", ") + input->name + " " + type_text(*input);
  return text;
}

/// What the main graph's inputs and outputs must say of their types and TYPE does not; empty if it does.
std::string missing_in(const onnx::TypeProto* type) {
  if (!type || type->value_case() == onnx::TypeProto::VALUE_NOT_SET) return "its type is not known";
  return type->has_tensor_type() && !type->tensor_type().has_shape() ? "the number of its axes is not known" : "";
}

void describe(const Value& value, onnx::ValueInfoProto& info) {
  info.set_name(value.name);
  if (value.declared_type) *info.mutable_type() = *value.declared_type;
}

}  // namespace

std::shared_ptr<GraphDraft> GraphDraft::of_model(const BuilderOptions& options) {
  const auto model = std::make_shared<ModelDraft>(options);
  GraphDraft& main = model->add(std::unique_ptr<GraphDraft>(new GraphDraft(*model, nullptr, Kind::kMain, options.name)));
  return {model, &main};
}

GraphDraft& GraphDraft::body(const std::string& name) {
  return model_.add(std::unique_ptr<GraphDraft>(new GraphDraft(model_, this, Kind::kBody, view().fresh_name(name))));
}

std::string GraphDraft::where() const { return (kind_ == Kind::kFunction ? "function '" : "graph '") + name_ + "'"; }
std::string GraphDraft::where(const Node& node) const { return where("node", node.proto->name()); }

bool GraphDraft::is_open(const std::string& where) {
  if (finished_) model_.fail({ErrorCode::kUsage, where, "it was finished when a node took it", "add all of it before that"});
  return !finished_ && !model_.error();
}

std::string GraphDraft::where(const std::string& kind, const std::string& name) const {
  return kind + " '" + name + "' of " + where();
}

const GraphDraft& GraphDraft::outermost() const {
  const GraphDraft* graph = this;
  while (graph->around_) graph = graph->around_;
  return *graph;
}

Value* GraphDraft::made(const std::string& key) const {
  for (const GraphDraft* graph = this; graph; graph = graph->around_)
    if (const auto known = graph->made_.find(key); known != graph->made_.end()) return known->second;
  return nullptr;
}

bool GraphDraft::sees(const Value& value, const std::string& where) {
  const GraphDraft* made_in = model_.graph_of(value);
  for (const GraphDraft* graph = this; graph; graph = graph->around_)
    if (graph == made_in) return true;
  if (!made_in)
    model_.fail({ErrorCode::kUsage, where, "'" + value.name + "' is a value of another model", "take one of this model"});
  else
    model_.fail({ErrorCode::kUsage, where, "'" + value.name + "' is a value of " + made_in->where(),
                 "bodies and functions hand out their outputs only"});
  return false;
}

bool GraphDraft::place(Node& node) {
  for (Value* output : node.outputs)
    if (output) model_.own(*output, *this);
  if (!is_open(where(node))) return false;
  if (const Status checked = check(node); !checked) {
    model_.fail(checked.error());
    return false;
  }
  nodes_.push_back(&node);
  std::ranges::copy_if(node.outputs, std::back_inserter(values_), [](const Value* output) { return output != nullptr; });
  return true;
}

Status GraphDraft::check(Node& node) {
  for (const Value* input : node.inputs)
    if (input && !sees(*input, where(node))) return tl::unexpected<Error>(*model_.error());
  const int version = model_.version_of(std::string(node.domain()), where(node));
  if (version == 0) return tl::unexpected<Error>(*model_.error());
  if (outermost().is_called_by(*node.proto))
    return fail(ErrorCode::kUsage, where(node), "a function calls itself", "write a Loop");
  const auto* function = model_.called(*node.proto);
  const Status valid =
      function ? check_call(*node.proto, *function, where(node)) : check_operator(*node.proto, version, where(node));
  if (!valid) return fail(ErrorCode::kUsage, valid.error().where, valid.error().what, valid.error().remedy);
  return infer(node);
}

Status GraphDraft::infer(Node& node) {
  const auto has_type = [](const Value* input) { return !input || input->declared_type; };
  if (has_no_types() || !std::ranges::all_of(node.inputs, has_type)) return {};
  const auto types = model_.types().infer(*node.proto);
  if (!types) return fail(ErrorCode::kUsage, where(node), types.error().what, "its inputs are " + types_text(node));
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (node.outputs[i] && (*types)[i].value_case() != onnx::TypeProto::VALUE_NOT_SET)
      model_.set_type(*node.outputs[i], (*types)[i]);
  const auto* contents = node.is("Constant") ? node.attribute("value") : nullptr;
  if (contents) model_.types().set_contents(node.outputs[0]->name, contents->t());
  return {};
}

Value& GraphDraft::new_value(const std::string& name) {
  Value& value = *view().new_value(graph(), name);
  model_.own(value, *this);
  return value;
}

std::string GraphDraft::taken_name(const std::string& name, const std::string& what) {
  if (kind_ != Kind::kMain) return view().fresh_name(name_ + "/" + name);
  return !model_.error() && model_.take_name(name, what) ? name : view().fresh_name(name);
}

Value* GraphDraft::input(const std::string& name, const onnx::TypeProto& type) {
  const std::string what = where("input", name);
  const bool has_type = type.value_case() != onnx::TypeProto::VALUE_NOT_SET;
  const std::string missing = kind_ == Kind::kMain ? missing_in(&type) : "";
  if (!missing.empty()) model_.fail({ErrorCode::kUsage, what, missing, "give its type and sizes, of which any may be open"});
  const bool is_valid = is_open(what);
  Value& value = new_value(taken_name(name, what));
  value.is_input = true;
  if (has_type) model_.set_type(value, type);
  wanted_names_[value.name] = name;
  if (is_valid && !model_.error()) inputs_.push_back(&value);
  return &value;
}

Value* GraphDraft::initializer(const std::string& name, const Tensor& tensor) {
  const std::string what = where("initializer", name);
  if (has_no_types()) model_.fail({ErrorCode::kUsage, what, "functions have none", "constant() makes a node that is one"});
  const bool is_valid = is_open(what);
  Value& value = new_value(taken_name(name, what));
  const auto proto = std::make_shared<const onnx::TensorProto>(to_proto(tensor, value.name));
  value.initializer = proto.get();
  contents_.push_back(proto);
  model_.set_type(value, tensor_type(tensor.type(), AxisSizes(tensor.dims().begin(), tensor.dims().end())));
  model_.types().set_contents(value.name, *proto);
  if (is_valid && !model_.error()) initializers_.push_back(&value);
  return &value;
}

bool GraphDraft::is_copied_as_output(const Value& value) const {
  return !value.producer || value.is_output || model_.graph_of(value) != this;
}

void GraphDraft::output(Value& value, const std::string& name) {
  const std::string what = where("output", name);
  if (!is_open(what)) return;
  const std::string missing = kind_ == Kind::kMain ? missing_in(value.declared_type) : "";
  if (!missing.empty()) return model_.fail({ErrorCode::kUsage, what, missing, "declare() says it"});
  const std::string taken = taken_name(name, what);
  if (model_.error()) return;
  model_.rename(value, taken);
  wanted_names_[taken] = name;
  value.is_output = true;
  outputs_.push_back(&value);
}

void GraphDraft::declare(Value& value, const onnx::TypeProto& type) {
  if (!sees(value, "declaration in " + where())) return;
  onnx::TypeProto declared = type;
  if (const Status agrees = value.declared_type ? merge_types(*value.declared_type, declared) : Status(); !agrees)
    return model_.fail(
        {ErrorCode::kUsage, "declaration of '" + value.name + "'", agrees.error().what, "it is " + type_text(value)});
  model_.set_type(value, declared);
}

void GraphDraft::write(onnx::GraphProto& graph) const {
  graph.set_name(name_);
  for (const Value* value : inputs_) describe(*value, *graph.add_input());
  for (const Value* value : initializers_) *graph.add_initializer() = *value->initializer;
  for (const Node* node : nodes_) *graph.add_node() = *node->proto;
  for (const Value* value : outputs_) describe(*value, *graph.add_output());
  for (const Value* value : values_)
    if (value->declared_type && !value->is_output) describe(*value, *graph.add_value_info());
}

onnx::GraphProto GraphDraft::finish_body() {
  finished_ = true;
  onnx::GraphProto graph;
  write(graph);
  return graph;
}

}  // namespace attn_opt
