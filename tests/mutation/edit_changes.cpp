#include "tests/mutation/edit_changes.h"

namespace attn_opt {

onnx::AttributeProto* attribute_of(Node& node, const std::string& name) {
  for (auto& attribute : *node.proto->mutable_attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

void remove_attribute(Node& node, const std::string& name) {
  auto& attributes = *node.proto->mutable_attribute();
  for (int i = attributes.size() - 1; i >= 0; --i)
    if (attributes[i].name() == name) attributes.DeleteSubrange(i, 1);
}

void set_attribute(Node& node, onnx::AttributeProto attribute) {
  remove_attribute(node, attribute.name());
  *node.proto->add_attribute() = std::move(attribute);
}

void bypass(Node& node, int input) {
  node.proto->set_op_type("Identity");
  node.proto->clear_attribute();
  node.inputs = {node.inputs[static_cast<size_t>(input)]};
}

GraphBuilder builder_of(Emission& emission) {
  static const SharedNodes nothing;
  return GraphBuilder(emission.edit, nothing, "mutant");
}

void insert_before(Emission& emission, Node& node, int input, const std::string& op, const GraphBuilder::Attributes& attributes,
                   const std::vector<Value*>& further) {
  Value*& read = node.inputs[static_cast<size_t>(input)];
  std::vector<Value*> inputs{read};
  inputs.insert(inputs.end(), further.begin(), further.end());
  read = builder_of(emission).new_node(op, inputs, {true}, attributes)->outputs[0];
}

}  // namespace attn_opt
