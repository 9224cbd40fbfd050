#include "attn_opt/graph_builder.h"

#include <onnx/defs/schema.h>

#include <algorithm>

#include "attn_opt/edit.h"
#include "attn_opt/executor.h"
#include "attn_opt/shape.h"
#include "src/graph/operator_text.h"
#include "src/io/check/onnx_schemas.h"
#include "src/rewrite/builder_backend.h"

namespace attn_opt {

class EditBackend : public BuilderBackend {
 public:
  EditBackend(Edit& edit, const SharedNodes& shared) : edit_(edit), shared_(shared) {}

  ModelGraph& view() const override { return edit_.model_; }
  Graph& graph() const override { return edit_.graph(); }
  Edit* edit() const override { return &edit_; }

  /// What this edit, or one before it, made.
  Value* made(const std::string& key) const override {
    if (auto own = edit_.made_.find(key); own != edit_.made_.end()) return own->second;
    return shared_.find(edit_.anchor_, key);
  }

  void keep(const std::string& key, Value& value) override { edit_.made_.emplace(key, &value); }

  bool place(Node& node) override {
    node.position = highest_place(node);
    edit_.nodes_.push_back(&node);
    return true;
  }

 private:
  /// As far up as what NODE reads allows: until it is in the model, those that match further up may share it.
  uint32_t highest_place(const Node& node) const {
    const uint32_t anchor = edit_.anchor_.position;
    if (!node.bodies.empty()) return anchor;  // these may read more
    uint32_t place = 0;
    for (const Value* input : node.inputs) {
      const Node* maker = input && input->graph == node.graph ? input->producer : nullptr;
      if (maker) place = std::max(place, maker->position + (maker->placement == Placement::kOfFile ? 1 : 0));
    }
    return std::min(place, anchor);
  }

  Edit& edit_;
  const SharedNodes& shared_;
};

namespace {

/// What the node computes, as bytes: equal keys are equal nodes. Lengths keep names apart, which may hold anything.
std::string key_of(const std::string& op, const std::vector<Value*>& inputs, const Attributes& attributes) {
  constexpr size_t kLengthOfMost = 64;  // of an input or an attribute
  std::string key;
  key.reserve(op.size() + kLengthOfMost * (1 + inputs.size() + attributes.size()));
  const auto append = [&key](size_t length) { key.append(reinterpret_cast<const char*>(&length), sizeof length); };
  (key += op) += ' ';
  append(inputs.size());
  for (const Value* input : inputs) {
    append(input ? input->name.size() : 0);
    if (input) key += input->name;
  }
  for (const auto& attribute : attributes) {
    append(attribute.proto().ByteSizeLong());
    attribute.proto().AppendToString(&key);
  }
  return key;
}

/// GRAPH, or the body in it that sees all of INPUTS: scores that are computed around a loop meet others in it.
Graph& innermost(Graph& graph, const std::vector<Value*>& inputs) {
  Graph* found = &graph;
  for (const Value* input : inputs)
    if (input && !found->sees(*input)) found = input->graph;
  return *found;
}

}  // namespace

GraphBuilder::GraphBuilder(Edit& edit, const SharedNodes& shared, std::string stem)
    : backend_(std::make_shared<EditBackend>(edit, shared)), stem_(std::move(stem)) {}

Edit& GraphBuilder::edit() const {
  Edit* edit = backend_->edit();
  if (!edit) throw Defect("a model that is built from nothing is no edit");
  return *edit;
}

ModelGraph& GraphBuilder::view() const { return backend_->view(); }

Node* GraphBuilder::detached_node(const std::string& op, const std::vector<Value*>& inputs, const std::vector<bool>& wanted,
                                  const Attributes& attributes) {
  Node* made = view().new_node(innermost(backend_->graph(), inputs));
  const OperatorText text(op);
  const std::string op_type(text.op);
  if (!text.domain.empty()) made->proto->set_domain(std::string(text.domain));
  made->proto->set_op_type(op_type);
  made->name_operator();
  made->proto->set_name(view().fresh_name(stem_.empty() ? op_type : stem_ + "/" + op_type));
  for (const auto& attribute : attributes) *made->proto->add_attribute() = attribute.proto();
  made->inputs.assign(inputs.begin(), inputs.end());
  for (const Value* input : inputs) made->proto->add_input(input ? input->name : "");
  for (const bool is_wanted : wanted) add_output(*made, is_wanted);
  return made;
}

void GraphBuilder::add_output(Node& node, bool is_wanted) {
  Value* output = nullptr;
  if (is_wanted) {
    output = view().new_value(*node.graph, view().fresh_name(node.proto->name() + "_output"));
    output->producer = &node;
    output->output = static_cast<int>(node.outputs.size());
  }
  node.outputs.push_back(output);
  node.proto->add_output(output ? output->name : "");
}

Value* GraphBuilder::node(const std::string& op, const std::vector<Value*>& inputs, const Attributes& attributes) {
  return made_once(key_of(op, inputs, attributes), op, inputs, attributes);
}

Node* GraphBuilder::new_node(const std::string& op, const std::vector<Value*>& inputs, const std::vector<bool>& wanted,
                             const Attributes& attributes) {
  Node* made = detached_node(op, inputs, wanted, attributes);
  backend_->place(*made);
  return made;
}

Value* GraphBuilder::along(const std::string& op, Value& value, const std::vector<int64_t>& axes, Attributes attributes) {
  const auto* schema = onnx_schema(op, view().edit_opset(), "");
  const bool is_attribute = schema && schema->attributes().contains("axes");
  if (!is_attribute) return node(op, {&value, ints(axes)}, attributes);
  attributes.emplace_back("axes", axes);
  return node(op, {&value}, attributes);
}

Value* GraphBuilder::made_once(const std::string& key, const std::string& op, const std::vector<Value*>& inputs,
                               const Attributes& attributes) {
  if (Value* known = backend_->made(key)) return known;
  Node* made = detached_node(op, inputs, {true}, attributes);
  if (backend_->place(*made) && !is_random(*made->proto)) backend_->keep(key, *made->outputs[0]);
  return made->outputs[0];
}

Value* GraphBuilder::constant(const Tensor& tensor) {
  if (tensor.type() == onnx::TensorProto::STRING) return node("Constant", {}, {{"value", tensor}});
  // Every site asks for the same few: their bytes are looked up before a proto is made.
  std::string key = "Constant " + std::to_string(tensor.type());
  for (const int64_t dim : tensor.dims()) key += ' ' + std::to_string(dim);
  const auto bytes = tensor.bytes();
  (key += ':').append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (Value* known = backend_->made(key)) return known;
  return made_once(key, "Constant", {}, {{"value", tensor}});
}

Value* GraphBuilder::constant(const Tensor& numbers, DataType type) {
  const Expected<Tensor> cast = numbers.cast(type);
  return constant(cast ? *cast : numbers.cast(onnx::TensorProto::FLOAT).value());
}

Value* GraphBuilder::ints(const std::vector<int64_t>& values) {
  return constant(Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values));
}

Value* GraphBuilder::scalar(double value, DataType type) { return constant(Tensor::scalar<double>(value), type); }

Value* GraphBuilder::scaled(Value* value, double factor, DataType type) {
  const bool divides = rounded(factor, type) != factor && rounded(1 / factor, type) == 1 / factor;
  return node(divides ? "Div" : "Mul", {value, scalar(divides ? 1 / factor : factor, type)});
}

Value* GraphBuilder::scaled_exactly(Value* value, double factor, DataType type) {
  const auto is_held = [type](double number) { return std::abs(rounded(number, type) - number) <= 1e-6 * std::abs(number); };
  if (element_size(type) >= sizeof(float) || is_held(factor) || is_held(1 / factor)) return scaled(value, factor, type);
  constexpr int64_t kWide = onnx::TensorProto::FLOAT;
  Value* wide = scaled(node("Cast", {value}, {attribute("to", kWide)}), factor, onnx::TensorProto::FLOAT);
  return node("Cast", {wide}, {attribute("to", int64_t{type})});
}

Value* GraphBuilder::shape(Value& value, int64_t begin, int64_t end) {
  constexpr int kFirstOfParts = 15;
  if (view().edit_opset() < kFirstOfParts) return node("Slice", {node("Shape", {&value}), ints({begin}), ints({end})});
  return node("Shape", {&value}, {{"start", begin}, {"end", end}});
}

}  // namespace attn_opt
