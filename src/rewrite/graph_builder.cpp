#include <onnx/defs/schema.h>

#include "attn_opt/edit.h"
#include "src/graph/operator_text.h"

namespace attn_opt {
namespace {

/// What the node computes, as text: equal keys are equal nodes. Lengths keep names apart, which may hold anything.
std::string key_of(const std::string& op, const std::vector<Value*>& inputs, const GraphBuilder::Attributes& attributes) {
  std::string key = op;
  auto append = [&](const std::string& part) { key += ' ' + std::to_string(part.size()) + ':' + part; };
  key += ' ' + std::to_string(inputs.size());
  for (const Value* input : inputs) append(input ? input->name : std::string());
  for (const auto& attribute : attributes) append(attribute.SerializeAsString());
  return key;
}

}  // namespace

Node* GraphBuilder::fill(const std::string& op, const std::vector<Value*>& inputs, const Attributes& attributes) {
  Node* made = edit_.model_.new_node(edit_.graph());
  const OperatorText wanted(op);
  const std::string op_type(wanted.op);
  if (!wanted.domain.empty()) made->proto->set_domain(std::string(wanted.domain));
  made->proto->set_op_type(op_type);
  made->proto->set_name(edit_.model_.fresh_name(stem_ + "/" + op_type));
  for (const auto& attribute : attributes) *made->proto->add_attribute() = attribute;
  made->inputs.assign(inputs.begin(), inputs.end());
  for (const Value* input : inputs) made->proto->add_input(input ? input->name : "");
  made->position = edit_.anchor_.position;
  edit_.nodes_.push_back(made);
  return made;
}

Value* GraphBuilder::made(const std::string& key) const {
  if (auto own = edit_.made_.find(key); own != edit_.made_.end()) return own->second;
  return shared_.find(edit_.anchor_, key);
}

Value* GraphBuilder::node(const std::string& op, const std::vector<Value*>& inputs, const Attributes& attributes) {
  std::string key = key_of(op, inputs, attributes);
  if (Value* known = made(key)) return known;
  return edit_.made_.emplace(std::move(key), new_node(op, inputs, {true}, attributes)->outputs[0]).first->second;
}

Node* GraphBuilder::new_node(const std::string& op, const std::vector<Value*>& inputs, const std::vector<bool>& wanted,
                             const Attributes& attributes) {
  Node* made = fill(op, inputs, attributes);
  for (size_t i = 0; i < wanted.size(); ++i) {
    Value* output = nullptr;
    if (wanted[i]) {
      output = edit_.model_.new_value(edit_.graph(), edit_.model_.fresh_name(made->proto->name() + "_output"));
      output->producer = made;
      output->output = static_cast<int>(i);
    }
    made->outputs.push_back(output);
    made->proto->add_output(output ? output->name : "");
  }
  return made;
}

Value* GraphBuilder::along(const std::string& op, Value& value, const std::vector<int64_t>& axes, Attributes attributes) {
  const auto* schema = onnx::OpSchemaRegistry::Schema(op, edit_.model_.edit_opset(), "");
  const bool is_attribute = schema && schema->attributes().contains("axes");
  if (!is_attribute) return node(op, {&value, ints(axes)}, attributes);
  attributes.push_back(attribute("axes", axes));
  return node(op, {&value}, attributes);
}

Value* GraphBuilder::constant(const Tensor& tensor) {
  // Every site asks for the same few: their bytes are looked up before a proto is made.
  std::string key = "Constant " + std::to_string(tensor.type());
  for (const int64_t dim : tensor.dims()) key += ' ' + std::to_string(dim);
  const auto bytes = tensor.bytes();
  (key += ':').append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (Value* known = made(key)) return known;
  onnx::AttributeProto value;
  value.set_name("value");
  value.set_type(onnx::AttributeProto::TENSOR);
  *value.mutable_t() = to_proto(tensor);
  return edit_.made_.emplace(std::move(key), new_node("Constant", {}, {true}, {value})->outputs[0]).first->second;
}

Value* GraphBuilder::ints(const std::vector<int64_t>& values) {
  return constant(Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values));
}

Value* GraphBuilder::scalar(double value, DataType type) { return constant(Tensor::scalar<double>(value).cast(type).value()); }

Value* GraphBuilder::shape(Value& value, int64_t begin, int64_t end) {
  constexpr int kFirstOfParts = 15;
  if (edit_.model_.edit_opset() < kFirstOfParts) return node("Slice", {node("Shape", {&value}), ints({begin}), ints({end})});
  return node("Shape", {&value}, {attribute("start", begin), attribute("end", end)});
}

onnx::AttributeProto GraphBuilder::attribute(const std::string& name, int64_t value) {
  onnx::AttributeProto proto;
  proto.set_name(name);
  proto.set_type(onnx::AttributeProto::INT);
  proto.set_i(value);
  return proto;
}

onnx::AttributeProto GraphBuilder::attribute(const std::string& name, float value) {
  onnx::AttributeProto proto;
  proto.set_name(name);
  proto.set_type(onnx::AttributeProto::FLOAT);
  proto.set_f(value);
  return proto;
}

onnx::AttributeProto GraphBuilder::attribute(const std::string& name, const std::vector<int64_t>& values) {
  onnx::AttributeProto proto;
  proto.set_name(name);
  proto.set_type(onnx::AttributeProto::INTS);
  proto.mutable_ints()->Add(values.begin(), values.end());
  return proto;
}

}  // namespace attn_opt
