#pragma once

#include <filesystem>

namespace attn_opt {

/// Is a model at PATH in ONNX's textual syntax?
inline bool is_text(const std::filesystem::path& path) { return path.extension() == ".onnxtxt"; }

}  // namespace attn_opt
