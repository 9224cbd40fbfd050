#include "src/opset/draft.h"

#include <algorithm>
#include <charconv>

namespace attn_opt {
namespace {

onnx::NodeProto make_node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
                          const Draft::Attributes& attributes) {
  onnx::NodeProto node;
  node.set_op_type(op);
  for (const auto& name : inputs) node.add_input(name);
  node.add_output(output);
  for (const auto& attribute : attributes) *node.add_attribute() = attribute;
  return node;
}

}  // namespace

std::string draft_input(size_t i) { return "in." + std::to_string(i); }
std::string draft_output(size_t i) { return "out." + std::to_string(i); }

int draft_number(const std::string& name, std::string_view kind) {
  int number = -1;
  if (name.starts_with(kind)) std::from_chars(name.data() + kind.size(), name.data() + name.size(), number);
  return number;
}

onnx::NodeProto canonical_node(const Node& node) {
  onnx::NodeProto canonical;
  canonical.set_op_type(node.op());
  *canonical.mutable_attribute() = node.proto->attribute();
  for (size_t i = 0; i < node.inputs.size(); ++i) canonical.add_input(node.inputs[i] ? draft_input(i) : "");
  for (size_t i = 0; i < node.outputs.size(); ++i) canonical.add_output(node.outputs[i] ? draft_output(i) : "");
  return canonical;
}

Draft::Draft(std::vector<onnx::NodeProto> nodes, size_t main) : changed_(true), rewired_(true) {
  const auto at = nodes.begin() + static_cast<std::ptrdiff_t>(main);
  node_ = std::move(*at);
  before_.assign(std::make_move_iterator(nodes.begin()), std::make_move_iterator(at));
  behind_.assign(std::make_move_iterator(at + 1), std::make_move_iterator(nodes.end()));
}

std::vector<const onnx::NodeProto*> Draft::nodes() const {
  std::vector<const onnx::NodeProto*> all;
  all.reserve(before_.size());
  for (const auto& node : before_) all.push_back(&node);
  all.push_back(&node_);
  for (const auto& node : behind_) all.push_back(&node);
  return all;
}

const onnx::AttributeProto* Draft::attribute(const std::string& name) {
  for (const auto& attribute : node_.attribute()) {
    if (attribute.name() != name) continue;
    if (attribute.ref_attr_name().empty()) return &attribute;
    given_by_caller_ = name;
  }
  return nullptr;
}

int64_t Draft::int_attribute(const std::string& name, int64_t otherwise) {
  const auto* found = attribute(name);
  return found ? found->i() : otherwise;
}

std::string Draft::string_attribute(const std::string& name, const std::string& otherwise) {
  const auto* found = attribute(name);
  return found ? found->s() : otherwise;
}

void Draft::set_op(const std::string& op) {
  node_.set_op_type(op);
  changed_ = true;
}

void Draft::set(const onnx::AttributeProto& attribute) {
  drop(attribute.name());
  *node_.add_attribute() = attribute;
  changed_ = true;
}

onnx::AttributeProto Draft::text(const std::string& attribute, const std::string& value) {
  onnx::AttributeProto proto;
  proto.set_name(attribute);
  proto.set_type(onnx::AttributeProto::STRING);
  proto.set_s(value);
  return proto;
}

void Draft::drop(const std::string& attribute) {
  auto& all = *node_.mutable_attribute();
  const auto found = std::ranges::find(all, attribute, [](const auto& one) { return one.name(); });
  if (found == all.end()) return;
  all.erase(found);
  changed_ = true;
}

void Draft::set_input(int i, const std::string& name) {
  while (node_.input_size() <= i) node_.add_input();
  node_.set_input(i, name);
  changed_ = rewired_ = true;
}

void Draft::drop_outputs_from(int count) {
  while (node_.output_size() > count) node_.mutable_output()->RemoveLast();
  changed_ = rewired_ = true;
}

std::string Draft::add(const std::string& op, const std::vector<std::string>& inputs, const Attributes& attributes) {
  before_.push_back(make_node(op, inputs, fresh(), attributes));
  changed_ = rewired_ = true;
  return before_.back().output(0);
}

std::string Draft::add_constant(const Tensor& tensor) {
  onnx::AttributeProto value;
  value.set_name("value");
  value.set_type(onnx::AttributeProto::TENSOR);
  *value.mutable_t() = to_proto(tensor);
  return add("Constant", {}, {value});
}

std::string Draft::add_ints(const std::vector<int64_t>& values) {
  return add_constant(Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values));
}

std::string Draft::divert_output(int i) {
  node_.set_output(i, fresh());
  changed_ = rewired_ = true;
  return node_.output(i);
}

void Draft::append(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
                   const Attributes& attributes) {
  behind_.push_back(make_node(op, inputs, output, attributes));
}

}  // namespace attn_opt
