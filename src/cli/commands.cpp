#include "src/cli/commands.h"

#include <algorithm>

namespace attn_opt {

std::span<const Command> commands() {
  static constexpr Command kCommands[] = {
      {"explain", "Say of every attention how it is fused, or what stands in the way", explain_command},
      {"run", "Run a model on the embedded executor", run_command},
      {"compare", "Run two models on the same inputs and compare their outputs", compare_command},
      {"test", "Run pattern regression cases (.onnxtxt)", test_command},
      {"batch", "Optimise many models, each in a process of its own", batch_command},
      {"patterns", "List the patterns", patterns_command},
  };
  return kCommands;
}

Expected<int> run_command_line(Arguments arguments) {
  const auto known = commands();
  const auto command = std::find_if(known.begin(), known.end(), [&](const Command& one) {
    return !arguments.empty() && one.name == arguments.front();
  });
  if (command != known.end()) arguments.erase(arguments.begin());
  const DeclaredCommand chosen = command == known.end() ? optimize_command() : command->declare();
  ATTN_OPT_TRY(const bool go_on, parse(*chosen.app, arguments));
  return go_on ? chosen.run() : 0;
}

}  // namespace attn_opt
