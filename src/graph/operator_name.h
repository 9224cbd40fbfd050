// How operators are called.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "attn_opt/graph.h"
#include "src/io/onnx_domain.h"

namespace attn_opt {

/// "Softmax", or "com.microsoft::MultiHeadAttention".
inline std::string operator_name(const Node& node) {
  return node.domain().empty() ? node.op() : std::string(node.domain()) + "::" + node.op();
}

/// Those that compute attention by themselves.
inline constexpr std::array<std::string_view, 5> kAttentionOperators = {
    "Attention", "com.microsoft::Attention", "com.microsoft::GroupQueryAttention", "com.microsoft::MultiHeadAttention",
    "com.microsoft::QAttention"};

}  // namespace attn_opt
