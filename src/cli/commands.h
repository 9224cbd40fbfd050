// The commands of attn-opt, a file each.
#pragma once

#include <span>
#include <string_view>

#include "src/cli/command_line.h"

namespace attn_opt {

struct Command {
  std::string_view name;
  std::string_view summary;
  /// Returns the exit status of a run that came to its end.
  Expected<int> (*run)(const Arguments& arguments);
};

/// All but the main job.
std::span<const Command> commands();

Expected<int> optimize_command(const Arguments& arguments);
Expected<int> explain_command(const Arguments& arguments);
Expected<int> run_command(const Arguments& arguments);
Expected<int> compare_command(const Arguments& arguments);
Expected<int> test_command(const Arguments& arguments);
Expected<int> patterns_command(const Arguments& arguments);

}  // namespace attn_opt
