#include "attn_opt/graph.h"
#include "src/graph/operator_number.h"

namespace attn_opt {

OperatorNumber operator_number(const Node& node) {
  return node.domain().empty() ? kOperatorNumbers.of(node.op()) : OperatorNumber{0};
}

void Node::name_operator() { number = operator_number(*this); }

const onnx::AttributeProto* Node::attribute(std::string_view name) const {
  for (const auto& attribute : proto->attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

int64_t Node::int_attribute(std::string_view name, int64_t otherwise) const {
  const auto* found = attribute(name);
  return found ? found->i() : otherwise;
}

float Node::float_attribute(std::string_view name, float otherwise) const {
  const auto* found = attribute(name);
  return found ? found->f() : otherwise;
}

std::string Node::string_attribute(std::string_view name, const std::string& otherwise) const {
  const auto* found = attribute(name);
  return found ? found->s() : otherwise;
}

const google::protobuf::RepeatedField<int64_t>* Node::ints_attribute(std::string_view name) const {
  const auto* found = attribute(name);
  return found ? &found->ints() : nullptr;
}

const std::string& Node::label() const {
  if (!proto->name().empty() || proto->output_size() == 0) return proto->name();
  return proto->output(0);
}

}  // namespace attn_opt
