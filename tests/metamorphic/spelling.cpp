#include "tests/metamorphic/spelling.h"

#include <algorithm>

#include "attn_opt/tensor.h"

namespace attn_opt {

std::unique_ptr<Spelling> Spelling::of(const Model& model) {
  std::unique_ptr<Spelling> spelling(new Spelling(model));
  auto view = ModelGraph::create(spelling->model_.proto);
  if (!view) return nullptr;
  spelling->view_ = *std::move(view);
  spelling->facts_ = std::make_unique<Facts>(*spelling->view_, *spelling->model_.tensors);
  return spelling;
}

std::vector<Node*> Spelling::nodes() const {
  std::vector<Node*> all;
  for (const auto& graph : view_->graphs()) all.insert(all.end(), graph->nodes().begin(), graph->nodes().end());
  return all;
}

const onnx::TensorProto* Spelling::constant(const Value& value) {
  if (value.initializer) return value.initializer;
  const bool is_made = value.producer && value.producer->is("Constant");
  const auto* attribute = is_made ? value.producer->attribute("value") : nullptr;
  return attribute ? &attribute->t() : nullptr;
}

std::vector<double> Spelling::numbers(const Value& value) const {
  const onnx::TensorProto* proto = constant(value);
  if (!proto || !is_floating(static_cast<DataType>(proto->data_type()))) return {};
  const auto tensor = to_tensor(*proto, *model_.tensors);
  const auto wide = tensor ? tensor->cast(onnx::TensorProto::DOUBLE) : tensor;
  if (!wide) return {};
  const auto data = wide->data<double>();
  return {data.begin(), data.end()};
}

google::protobuf::RepeatedPtrField<onnx::NodeProto>& Spelling::list_of(const Node& node) {
  Graph& graph = *node.graph;
  if (graph.proto()) return *graph.proto()->mutable_node();
  return *const_cast<onnx::FunctionProto*>(graph.function())->mutable_node();
}

int Spelling::index_of(const Node& node) {
  const auto& list = list_of(node);
  int index = 0;
  while (&list[index] != node.proto) ++index;
  return index;
}

void Spelling::insert(const Node& neighbour, int index, onnx::NodeProto node) {
  auto& list = list_of(neighbour);
  *list.Add() = std::move(node);
  for (int i = list.size() - 1; i > index; --i) list.SwapElements(i, i - 1);
}

void Spelling::insert_before(const Node& place, onnx::NodeProto node) { insert(place, index_of(place), std::move(node)); }
void Spelling::insert_after(const Node& place, onnx::NodeProto node) { insert(place, index_of(place) + 1, std::move(node)); }

std::string Spelling::add_constant(const Node& place, onnx::TensorProto tensor) {
  const std::string name = fresh("constant");
  constexpr int kFirstWithInitializersThatAreNoInputs = 4;
  if (place.graph->proto() && model_.proto.ir_version() >= kFirstWithInitializersThatAreNoInputs) {
    tensor.set_name(name);
    *place.graph->proto()->add_initializer() = std::move(tensor);
  } else {
    insert_before(place, constant_node(tensor, name));
  }
  return name;
}

onnx::NodeProto node_of(const std::string& op, const std::vector<std::string>& inputs, const std::string& output) {
  onnx::NodeProto node;
  node.set_op_type(op);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

void drop_attribute(onnx::NodeProto& node, const std::string& name) {
  auto& attributes = *node.mutable_attribute();
  for (int i = attributes.size(); i-- > 0;)
    if (attributes[i].name() == name) attributes.DeleteSubrange(i, 1);
}

void set_attribute(onnx::NodeProto& node, const std::string& name, int64_t value) {
  drop_attribute(node, name);
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(value);
}

void set_attribute(onnx::NodeProto& node, const std::string& name, const std::vector<int64_t>& values) {
  drop_attribute(node, name);
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INTS);
  attribute->mutable_ints()->Assign(values.begin(), values.end());
}

onnx::NodeProto constant_node(const onnx::TensorProto& tensor, const std::string& output) {
  onnx::NodeProto node = node_of("Constant", {}, output);
  auto* attribute = node.add_attribute();
  attribute->set_name("value");
  attribute->set_type(onnx::AttributeProto::TENSOR);
  *attribute->mutable_t() = tensor;
  attribute->mutable_t()->clear_name();
  return node;
}

onnx::TensorProto int64_tensor(const std::vector<int64_t>& values) {
  onnx::TensorProto tensor;
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  tensor.mutable_int64_data()->Assign(values.begin(), values.end());
  return tensor;
}

onnx::TensorProto filled_tensor(DataType type, const std::vector<int64_t>& dims, double value) {
  const size_t count = static_cast<size_t>(element_count(dims));
  return to_proto(*Tensor::of<double>(dims, std::vector<double>(count, value)).cast(type));
}

}  // namespace attn_opt
