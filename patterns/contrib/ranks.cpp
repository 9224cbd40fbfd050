#include "patterns/contrib/ranks.h"

namespace attn_opt {
namespace {

using P = onnx::TensorProto;

bool holds_numbers(DataType type) {
  return type != P::UNDEFINED && type != P::STRING && type != P::COMPLEX64 && type != P::COMPLEX128;
}

}  // namespace

std::string shape_said(std::string_view name, const Value& value, Facts& facts) {
  const MaybeShape shape = facts.shape(value);
  return std::string(name) + " '" + value.name + "' is " + (shape ? to_string(*shape) : "of no known rank");
}

Matched<void> check_ranks(const Node& node, std::span<const InputRank> ranks, Facts& facts, size_t typed) {
  const DataType type = node.input(typed) ? facts.type(*node.input(typed)) : onnx::TensorProto::UNDEFINED;
  if (!is_floating(type))
    return missed("contrib.type", &node, "input " + std::to_string(typed) + " is of type " + type_name(type));
  for (const Value* value : node.inputs)
    if (value && !holds_numbers(facts.type(*value)))
      return missed("contrib.type", &node, "the input '" + value->name + "' is of type " + type_name(facts.type(*value)));
  for (const InputRank& wanted : ranks) {
    const Value* value = node.input(wanted.input);
    if (!value && !wanted.is_required) continue;
    if (!value) return missed("contrib.rank", &node, "there is no " + std::string(wanted.name));
    if (facts.shape(*value).has_rank(wanted.rank)) continue;
    return missed("contrib.rank", &node,
                  shape_said(wanted.name, *value, facts) + ", not of rank " + std::to_string(wanted.rank));
  }
  return {};
}

}  // namespace attn_opt
