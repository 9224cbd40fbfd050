// Types of values, declared or inferred.
#pragma once

#include <string>

#include "attn_opt/graph_builder.h"

namespace attn_opt {

/// "float32[batch, 4]"; "float32" where the rank is not known, "of unknown type".
std::string type_text(const Value& value);

/// Enters what INFERRED says into DECLARED. Error: kUsage where they contradict each other.
Status merge_types(const onnx::TypeProto& inferred, onnx::TypeProto& declared);

}  // namespace attn_opt
