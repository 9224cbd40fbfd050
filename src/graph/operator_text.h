#pragma once

#include <string_view>

namespace attn_opt {

/// Parts of "Op" of ai.onnx, or "domain::Op". The domain of ai.onnx is "".
struct OperatorText {
  explicit OperatorText(std::string_view text) : op(text) {
    const size_t colons = text.find("::");
    if (colons == std::string_view::npos) return;
    domain = text.substr(0, colons) == "ai.onnx" ? "" : text.substr(0, colons);
    op = text.substr(colons + 2);
  }
  std::string_view domain, op;
};

}  // namespace attn_opt
