#include "src/match/attribute_default.h"

#include <onnx/defs/schema.h>

#include <algorithm>

#include "src/io/check/runtime_operators.h"

namespace attn_opt {

namespace {

/// The default of attribute NAME in the operator's schema; null if it has none.
const onnx::AttributeProto* schema_default(const Node& node, const std::string& name, int opset) {
  const auto* schema = find_schema(node.op(), opset, std::string(node.domain()));
  if (!schema) return nullptr;
  const auto known = schema->attributes().find(name);
  return known == schema->attributes().end() || known->second.default_value.type() == onnx::AttributeProto::UNDEFINED
             ? nullptr
             : &known->second.default_value;
}

}  // namespace

bool same_value(const onnx::AttributeProto& wanted, const onnx::AttributeProto& found) {
  if (wanted.type() != found.type()) return false;
  if (wanted.type() == onnx::AttributeProto::FLOAT) return is_near(wanted.f(), found.f());
  if (wanted.type() == onnx::AttributeProto::INT) return wanted.i() == found.i();
  if (wanted.type() == onnx::AttributeProto::INTS)
    return std::equal(wanted.ints().begin(), wanted.ints().end(), found.ints().begin(), found.ints().end());
  onnx::AttributeProto one = wanted, other = found;
  for (auto* attribute : {&one, &other}) {
    attribute->clear_name();
    attribute->clear_doc_string();
  }
  return one.SerializeAsString() == other.SerializeAsString();
}

const onnx::AttributeProto* attribute_or_default(const Node& node, const std::string& name, int opset) {
  if (const auto* given = node.attribute(name)) return given;
  return schema_default(node, name, opset);
}

bool says_the_default(const Node& node, const onnx::AttributeProto& given, int opset) {
  const std::string& name = given.name();
  if (const auto* known = schema_default(node, name, opset)) return same_value(*known, given);
  const auto are_all = [&given](int64_t number) {
    return std::ranges::all_of(given.ints(), [number](int64_t one) { return one == number; });
  };
  if (name == "strides" || name == "dilations") return are_all(1);
  if (name == "pads") return are_all(0);
  return name == "kernel_shape" && (node.is("Conv") || node.is("ConvTranspose"));
}

}  // namespace attn_opt
