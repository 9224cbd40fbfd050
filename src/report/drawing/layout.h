// Text within a width.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attn_opt {

inline constexpr size_t kColumns = 100;

/// TEXT in which what is no printable character became '?'.
std::string printable(const std::string& text);

/// TEXT, printable, cut in its middle to WIDTH columns.
std::string elided(const std::string& text, size_t width);

/// Lines of TEXT, broken at blanks, each after INDENT blanks and within kColumns; a longer word keeps a line
/// to itself.
std::string wrapped(const std::string& text, size_t indent);

/// "1.5 GB".
std::string rounded_bytes(int64_t bytes);

/// PARTS with SEPARATOR between them.
std::string joined(const std::vector<std::string>& parts, const std::string& separator);

}  // namespace attn_opt
