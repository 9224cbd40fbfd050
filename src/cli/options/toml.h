// Settings in TOML 1.0: tables, and keys with strings, numbers, booleans or arrays of these. Dotted keys, inline tables, arrays
// of tables, dates and strings over several lines have no use here and are errors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attn_opt/status.h"

namespace attn_opt {

struct TomlSetting {
  std::string table;  ///< "" above all tables
  std::string key;
  std::vector<std::string> values;  ///< numbers and booleans as they are written
  int line = 0;
};

/// The settings of TEXT, which stands in PATH. Error: kUsage, with the line.
Expected<std::vector<TomlSetting>> parse_toml(std::string_view text, const std::string& path);

}  // namespace attn_opt
