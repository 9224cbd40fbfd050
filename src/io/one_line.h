// Messages of other libraries, made fit for one line of ours.
#pragma once

#include <string>

namespace attn_opt {

/// TEXT with every run of white space as one space, cut to a readable length.
inline std::string one_line(const std::string& text) {
  constexpr size_t kLongest = 500;
  std::string line;
  for (const char c : text) {
    const bool space = static_cast<unsigned char>(c) <= ' ';
    if (!space)
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
    if (line.size() > kLongest) return line + " ...";
  }
  if (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

}  // namespace attn_opt
