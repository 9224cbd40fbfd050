// docs/misses.md and the table of preconditions in docs/verification.md, which are built in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attn_opt {

/// A section of docs/misses.md, in Markdown.
struct MissManual {
  std::string meaning;          ///< its first paragraph, on one line
  std::string text;             ///< all but the heading
  std::string example, remedy;  ///< what its list says, on one line each
};

/// All ids that have a page: misses, then preconditions.
std::vector<std::string> manual_ids();

/// What is to be said of ID, a miss or a precondition, as plain text; empty if it is neither.
std::string manual_page(std::string_view id);

/// Empty if MISS_ID has no section.
MissManual manual_of(std::string_view miss_id);

/// What docs/verification.md says of a precondition; empty if it has no row for ID.
std::string meaning_of_precondition(std::string_view id);

/// TEXT without the marks of code.
std::string without_marks(const std::string& text);

}  // namespace attn_opt
