#include "src/opset/draft_writer.h"

namespace attn_opt {
namespace {

void change_in_place(onnx::NodeProto& proto, const Draft& draft) {
  proto.set_op_type(draft.node().op_type());
  *proto.mutable_attribute() = draft.node().attribute();
}

}  // namespace

/// A constant that an earlier draft put into the graph serves again.
Value* DraftWriter::constant(Node& node, const onnx::NodeProto& draft) {
  Value*& known = constants_[{node.graph, draft.attribute(0).SerializeAsString()}];
  if (known == nullptr) {
    Values values;
    known = add(node, draft, values)->outputs[0];
  }
  return known;
}

Node* DraftWriter::add(Node& node, const onnx::NodeProto& draft, Values& values) {
  Node* added = view_.new_node(*node.graph);
  added->proto->set_op_type(draft.op_type());
  added->proto->set_name(view_.fresh_name(node.label() + "/" + draft.op_type()));
  *added->proto->mutable_attribute() = draft.attribute();
  for (const auto& name : draft.input()) added->inputs.push_back(name.empty() ? nullptr : values[name]);
  for (int i = 0; i < draft.output_size(); ++i) {
    Value* value = nullptr;
    if (!draft.output(i).empty()) {
      value = view_.new_value(*node.graph, view_.fresh_name(added->proto->name() + "_output"));
      value->producer = added;
      value->output = i;
      values[draft.output(i)] = value;
    }
    added->outputs.push_back(value);
  }
  view_.link(*added, node);
  return added;
}

void DraftWriter::write(Node& node, const Draft& draft) {
  if (!draft.rewired()) return change_in_place(*node.proto, draft);
  Values values;
  for (size_t i = 0; i < node.inputs.size(); ++i) values[draft_input(i)] = node.inputs[i];
  for (const onnx::NodeProto* part : draft.nodes()) {
    if (part->op_type() == "Constant") {
      values[part->output(0)] = constant(node, *part);
      continue;
    }
    Node* added = add(node, *part, values);
    if (part != &draft.node()) continue;
    added->proto->set_name(node.proto->name());
    added->proto->set_doc_string(node.proto->doc_string());
    *added->proto->mutable_metadata_props() = node.proto->metadata_props();
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const auto made = values.find(draft_output(i));
    if (node.outputs[i] == nullptr || made == values.end()) continue;
    Value& old = *node.outputs[i];
    view_.take_over(old, *made->second->producer, made->second->output);
  }
  view_.remove_if_dead(node);
}

}  // namespace attn_opt
