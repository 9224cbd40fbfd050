// Text within a width.
#pragma once

#include <string>
#include <vector>

namespace attn_opt {

inline constexpr size_t kColumns = 100;

/// TEXT cut in its middle to WIDTH columns; what is no printable character becomes '?'.
std::string elided(const std::string& text, size_t width);

/// Lines of TEXT, broken at blanks, each after INDENT blanks and within kColumns; a longer word keeps a line
/// to itself.
std::string wrapped(const std::string& text, size_t indent);

/// PARTS with SEPARATOR between them.
std::string joined(const std::vector<std::string>& parts, const std::string& separator);

}  // namespace attn_opt
