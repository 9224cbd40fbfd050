#include "src/opset/draft_writer.h"

namespace attn_opt {
namespace {

void set_operator(onnx::NodeProto& proto, const onnx::NodeProto& draft) {
  proto.set_op_type(draft.op_type());
  *proto.mutable_attribute() = draft.attribute();
}

void set_operator(Node& node, const onnx::NodeProto& draft) {
  set_operator(*node.proto, draft);
  node.name_operator();
}

}  // namespace

/// A constant that an earlier draft put into the graph serves again.
Value* DraftWriter::constant(Node& node, const onnx::NodeProto& draft) {
  Value*& of_draft = constants_of_drafts_[{node.graph, &draft}];
  if (of_draft != nullptr) return of_draft;
  Value*& known = constants_[{node.graph, draft.attribute(0).SerializeAsString()}];
  if (known == nullptr) {
    Values values;
    known = add(node, draft, values)->outputs[0];
  }
  return of_draft = known;
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

bool DraftWriter::fits_in_place(const Node& node, const Draft& draft) {
  const onnx::NodeProto& changed = draft.node();
  if (!draft.behind().empty() || changed.output_size() != static_cast<int>(node.outputs.size())) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != nullptr && !draft.has_input(static_cast<int>(i))) return false;
  }
  return true;
}

void DraftWriter::change_in_place(Node& node, const onnx::NodeProto& draft, Values& values) {
  set_operator(node, draft);
  const auto count = static_cast<size_t>(draft.input_size());
  for (size_t i = node.inputs.size(); i < count; ++i) node.proto->add_input();
  node.inputs.resize(count);
  node.use_slots.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const std::string& name = draft.input(static_cast<int>(i));
    if (name.empty()) continue;
    Value* value = values[name];
    if (value != node.inputs[i]) view_.set_input(node, static_cast<int>(i), *value);
  }
}

void DraftWriter::replace(Node& node, const onnx::NodeProto& draft, Values& values) {
  Node* added = add(node, draft, values);
  onnx::NodeProto proto = *node.proto;  // with what it has besides: name, documentation, metadata, unknown fields
  set_operator(proto, draft);
  proto.mutable_input()->Swap(added->proto->mutable_input());
  proto.mutable_output()->Swap(added->proto->mutable_output());
  added->proto->Swap(&proto);
}

void DraftWriter::write(Node& node, const Draft& draft) {
  if (!draft.rewired()) return set_operator(node, draft.node());
  Values values;
  for (size_t i = 0; i < node.inputs.size(); ++i) values[draft_input(i)] = node.inputs[i];
  for (const auto& part : draft.before()) {
    if (part.op_type() == "Constant")
      values[part.output(0)] = constant(node, part);
    else
      add(node, part, values);
  }
  if (fits_in_place(node, draft)) return change_in_place(node, draft.node(), values);
  replace(node, draft.node(), values);
  for (const auto& part : draft.behind()) add(node, part, values);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const auto made = values.find(draft_output(i));
    if (node.outputs[i] == nullptr || made == values.end()) continue;
    Value& old = *node.outputs[i];
    view_.take_over(old, *made->second->producer, made->second->output);
  }
  view_.remove_if_dead(node);
}

}  // namespace attn_opt
