// From the words of a command line to the command that runs.
#pragma once

#include "src/cli/command_line.h"

namespace attn_opt {

/// --config, --no-config, --color: what all commands have.
void declare_common_options(CLI::App& app);

}  // namespace attn_opt
