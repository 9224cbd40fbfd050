#include "src/match/attribute_default.h"

#include <onnx/defs/schema.h>

#include "src/io/check/runtime_operators.h"

namespace attn_opt {

const onnx::AttributeProto* attribute_or_default(const Node& node, const std::string& name, int opset) {
  if (const auto* given = node.attribute(name)) return given;
  const auto* schema = find_schema(node.op(), opset, std::string(node.domain()));
  if (!schema) return nullptr;
  const auto known = schema->attributes().find(name);
  return known == schema->attributes().end() || known->second.default_value.type() == onnx::AttributeProto::UNDEFINED
             ? nullptr
             : &known->second.default_value;
}

}  // namespace attn_opt
