#include "src/cli/commands/commands.h"

#include <algorithm>

#include "src/cli/commands/dispatch.h"
#include "src/cli/options/option_table.h"

namespace attn_opt {

std::span<const Command> commands() {
  static constexpr Command kCommands[] = {
      {"explain", "Say of every attention how it is fused, or what stands in the way", explain_command},
      {"run", "Run a model on the embedded executor", run_command},
      {"compare", "Run two models on the same inputs and compare their outputs", compare_command},
      {"test", "Run pattern regression cases (.onnxtxt)", test_command},
      {"batch", "Optimise many models, each in a process of its own", batch_command},
      {"patterns", "List the patterns", patterns_command},
      {"completion", "Print the completions of a shell: bash, zsh or fish", completion_command, true},
      {"man", "Print the manual page", man_command, true},
  };
  return kCommands;
}

DeclaredCommand declare_command(const std::string& name) {
  const auto known = commands();
  const auto command = std::ranges::find(known, name, &Command::name);
  DeclaredCommand declared = command == known.end() ? optimize_command() : command->declare();
  declare_common_options(*declared.app);
  polish(*declared.app);
  return declared;
}

}  // namespace attn_opt
