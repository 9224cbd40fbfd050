// UTF-8 as the text operators read it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace attn_opt {

struct CodePoint {
  char32_t value = 0;
  size_t bytes = 1;
};

/// The first code point of TEXT, which is not empty; nothing if its bytes are not UTF-8.
std::optional<CodePoint> first_code_point(std::string_view text);
void append_utf8(std::string& text, char32_t value);

/// What Unicode calls white space, and the separators U+001C to U+001F.
bool is_white_space(char32_t value);

/// TEXT in the other case, one code point at a time; nothing if it is not UTF-8.
std::optional<std::string> upper_case(std::string_view text);
std::optional<std::string> lower_case(std::string_view text);

}  // namespace attn_opt
