// Attributes of nodes as Python values: int, float, str, lists of them, arrays, graphs.
#pragma once

#include <string>

#include "attn_opt/attribute.h"
#include "python/src/scope.h"

namespace attn_opt::python {

/// ATTRIBUTE of NODE. Types and sparse tensors come as the bytes of their protos.
nb::object attribute_value(const onnx::AttributeProto& attribute, const NodeHandle& node);
/// The attribute NAME that VALUE is: bool and int, float, str and bytes, sequences of one of them, an array, a body, a
/// Parameter.
onnx::AttributeProto attribute_of(const std::string& name, nb::handle value);
Attributes given_attributes(const nb::kwargs& given);

}  // namespace attn_opt::python
