#pragma once

#include <string_view>

namespace attn_opt {

/// DOMAIN has two spellings.
inline bool is_onnx(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

}  // namespace attn_opt
