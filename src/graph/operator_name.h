// How operators are called.
#pragma once

#include <string>

#include "attn_opt/graph.h"
#include "src/io/onnx_domain.h"

namespace attn_opt {

/// "Softmax", or "com.microsoft::MultiHeadAttention".
inline std::string operator_name(const Node& node) {
  return node.domain().empty() ? node.op() : std::string(node.domain()) + "::" + node.op();
}

}  // namespace attn_opt
