#include "attn_opt/attribute.h"

namespace attn_opt {
namespace {

using A = onnx::AttributeProto;

A typed(std::string name, A::AttributeType type) {
  A proto;
  proto.set_name(std::move(name));
  proto.set_type(type);
  return proto;
}

}  // namespace

A Attribute::integer(std::string name, int64_t value) {
  A proto = typed(std::move(name), A::INT);
  proto.set_i(value);
  return proto;
}

A Attribute::number(std::string name, float value) {
  A proto = typed(std::move(name), A::FLOAT);
  proto.set_f(value);
  return proto;
}

Attribute::Attribute(std::string name, std::string value) : proto_(typed(std::move(name), A::STRING)) {
  proto_.set_s(std::move(value));
}

Attribute::Attribute(std::string name, const std::vector<int64_t>& values) : proto_(typed(std::move(name), A::INTS)) {
  proto_.mutable_ints()->Add(values.begin(), values.end());
}

Attribute::Attribute(std::string name, const std::vector<float>& values) : proto_(typed(std::move(name), A::FLOATS)) {
  proto_.mutable_floats()->Add(values.begin(), values.end());
}

Attribute::Attribute(std::string name, const std::vector<std::string>& values) : proto_(typed(std::move(name), A::STRINGS)) {
  for (const std::string& value : values) proto_.add_strings(value);
}

Attribute::Attribute(std::string name, const Tensor& value) : proto_(typed(std::move(name), A::TENSOR)) {
  *proto_.mutable_t() = to_proto(value);
}

Attribute::Attribute(std::string name, onnx::TypeProto value) : proto_(typed(std::move(name), A::TYPE_PROTO)) {
  *proto_.mutable_tp() = std::move(value);
}

Attribute Attribute::reference(std::string name, std::string parameter, A::AttributeType type) {
  A proto = typed(std::move(name), type);
  proto.set_ref_attr_name(std::move(parameter));
  return proto;
}

}  // namespace attn_opt
