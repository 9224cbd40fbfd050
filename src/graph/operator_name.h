// How operators are called.
#pragma once

#include <string>
#include <string_view>

#include "attn_opt/graph.h"

namespace attn_opt {

/// DOMAIN has two spellings.
inline bool is_onnx(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

/// "Softmax", or "com.microsoft::MultiHeadAttention".
inline std::string operator_name(const Node& node) {
  return node.domain().empty() ? node.op() : std::string(node.domain()) + "::" + node.op();
}

}  // namespace attn_opt
