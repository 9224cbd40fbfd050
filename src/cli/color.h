// Colour on terminals: by --color, else unless NO_COLOR is set or the stream is no terminal.
#pragma once

#include <cstdio>
#include <string>

namespace attn_opt {

enum class ColorMode { kAuto, kAlways, kNever };

/// Of the whole process.
void set_color(ColorMode mode);

/// TEXT with its words of outcome (fused, missed, failed, ...) in colour if STREAM takes it. Names of nodes stay as they are.
std::string painted(const std::string& text, std::FILE* stream);
/// "attn-opt: ", the beginning of errors, alike.
std::string painted_error_begin();

}  // namespace attn_opt
