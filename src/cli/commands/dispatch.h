// From the words of a command line to the command that runs.
#pragma once

#include "attn_opt/status.h"
#include "src/cli/options/arguments.h"

namespace attn_opt {

/// --config, --no-config, --color: what all commands have.
void declare_common_options(CLI::App& app);

/// Runs what ARGUMENTS ask for: a command, or the main job. Returns the exit status of a run that came to its end.
Expected<int> run_command_line(Arguments arguments);

}  // namespace attn_opt
