// Attributes as a runtime sees them: given by the node, or by its operator.
#pragma once

#include <string>

#include "attn_opt/graph.h"

namespace attn_opt {

/// The attribute NAME of NODE, whose domain is of version OPSET, as given or by its schema's default; null if it has neither.
const onnx::AttributeProto* attribute_or_default(const Node& node, const std::string& name, int opset);

}  // namespace attn_opt
