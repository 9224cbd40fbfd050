// attn-opt.toml: options as a file says them. What the command line says counts more.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "attn_opt/status.h"
#include "src/cli/options/arguments.h"

namespace attn_opt {

/// attn-opt.toml in FOLDER, or in the nearest folder above that has one.
std::optional<std::filesystem::path> find_config(const std::filesystem::path& folder);

/// The options that the file PATH has for the command COMMAND ("" is the main job), as words of a command line; paths in it
/// are meant from its folder. Without those that PARSED, an app of that command, was given, or that exclude one of these.
/// Keys above all tables are for the main job, explain and batch, as far as they have such an option; those of a table
/// [COMMAND] ([optimize] for the main job) count more. Errors: kInvalidInput (cannot be read), kUsage (a key or table that
/// there is not).
Expected<Arguments> config_words(const std::filesystem::path& path, const std::string& command, const CLI::App& parsed);

}  // namespace attn_opt
