// The commands of attn-opt, a file each.
#pragma once

#include <span>
#include <string_view>

#include "src/cli/options/command_line.h"

namespace attn_opt {

struct Command {
  std::string_view name;
  std::string_view summary;
  DeclaredCommand (*declare)();
  bool makes_text = false;  ///< writes about attn-opt itself: takes no options from attn-opt.toml
};

/// All but the main job.
std::span<const Command> commands();

DeclaredCommand optimize_command();
DeclaredCommand explain_command();
DeclaredCommand run_command();
DeclaredCommand compare_command();
DeclaredCommand test_command();
DeclaredCommand batch_command();
DeclaredCommand patterns_command();

DeclaredCommand completion_command();
DeclaredCommand man_command();

/// The command NAME, "" being the main job, with the options that all have.
DeclaredCommand declare_command(const std::string& name);

}  // namespace attn_opt
