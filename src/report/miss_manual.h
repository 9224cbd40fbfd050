// docs/misses.md, which is built in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attn_opt {

/// A section of docs/misses.md, in Markdown.
struct MissManual {
  std::string meaning;  ///< its first paragraph, on one line
  std::string text;     ///< all but the heading
};

/// All ids that have a section.
std::vector<std::string> manual_ids();

/// Empty if MISS_ID has no section.
MissManual manual_of(std::string_view miss_id);

/// TEXT without the marks of code.
std::string without_marks(const std::string& text);

}  // namespace attn_opt
