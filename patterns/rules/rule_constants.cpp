#include "patterns/rules/rule_constants.h"

#include "src/io/onnx_domain.h"

namespace attn_opt {

bool is_constant_node(const onnx::NodeProto& node) { return node.op_type() == "Constant" && is_onnx(node.domain()); }

Tensor constant_of(const onnx::NodeProto& node) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == "value") return to_tensor(attribute.t(), inline_tensors()).value_or(Tensor());
    if (attribute.name() == "value_float") return Tensor::scalar<float>(attribute.f());
    if (attribute.name() == "value_int") return Tensor::scalar<int64_t>(attribute.i());
    if (attribute.name() == "value_ints")
      return Tensor::of<int64_t>({attribute.ints_size()}, {attribute.ints().begin(), attribute.ints().end()});
    if (attribute.name() == "value_floats")
      return Tensor::of<float>({attribute.floats_size()}, {attribute.floats().begin(), attribute.floats().end()});
  }
  return {};
}

Value* ReplacementValues::at(const std::string& name) {
  if (name.empty()) return nullptr;
  const auto [made, is_new] = made_.try_emplace(name);
  if (is_new) made->second = build_->constant(constants_.at(name));
  return made->second;
}

bool ReplacementValues::takes_constant(const onnx::NodeProto& proto) {
  Tensor content;
  if (is_constant_node(proto)) {
    content = constant_of(proto);
  } else if (proto.op_type() == "CastLike" && is_onnx(proto.domain()) && constants_.contains(proto.input(0))) {
    const auto like = made_.find(proto.input(1));
    const DataType type = like == made_.end() ? DataType(onnx::TensorProto::UNDEFINED) : GraphBuilder::type(*like->second);
    if (is_floating(type)) content = constants_.at(proto.input(0)).cast(type).value_or(Tensor());
  }
  if (content.has_value()) constants_[proto.output(0)] = content;
  return content.has_value();
}

}  // namespace attn_opt
