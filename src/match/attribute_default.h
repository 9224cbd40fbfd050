// Attributes as a runtime sees them: given by the node, or by its operator.
#pragma once

#include <cmath>
#include <string>

#include "attn_opt/graph.h"

namespace attn_opt {

/// Texts hold a number in fewer digits than a model does.
inline bool is_near(double one, double other) { return one == other || std::abs(one - other) <= 1e-6 * std::abs(one); }

/// Whether both have the same value, their names and texts apart.
bool same_value(const onnx::AttributeProto& wanted, const onnx::AttributeProto& found);

/// The attribute NAME of NODE, whose domain is of version OPSET, as given or by its schema's default; null if it has neither.
const onnx::AttributeProto* attribute_or_default(const Node& node, const std::string& name, int opset);

/// True if GIVEN, an attribute of NODE, says what the operator would do without it: its schema's default, or what the text of
/// Conv and of pooling has for their strides and dilations (1), pads (0) and kernel_shape (that of the weights).
bool says_the_default(const Node& node, const onnx::AttributeProto& given, int opset);

}  // namespace attn_opt
