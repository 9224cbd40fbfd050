// What is said of options beside their declarations, in one place for help, completions, the man page and attn-opt.toml.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/cli/options/arguments.h"

namespace attn_opt {

/// The values of --opset.
inline constexpr std::string_view kOpsetWords = "keep|23|24|25";
/// The values of --kv-cache.
inline constexpr std::string_view kKvCacheWords = "growing|static|static=N";

/// Groups APP's options, names what their values are, and adds examples.
void polish(CLI::App& app);

/// Does the value of OPTION name a file or folder?
bool names_path(const CLI::Option& option);
/// The values that OPTION takes, if they can be listed.
std::vector<std::string> choices_of(const CLI::Option& option);
/// What stands for OPTION's value: "FILE", "auto|3d|4d"; empty for a flag.
std::string value_label(const CLI::Option& option);
/// The long names of OPTION, without those that it had once.
std::vector<std::string> listed_names(const CLI::Option& option);
/// "--only"; the long name if there is one.
std::string name_of(const CLI::Option& option);

}  // namespace attn_opt
