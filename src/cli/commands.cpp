#include "src/cli/commands.h"

namespace attn_opt {

std::span<const Command> commands() {
  static constexpr Command kCommands[] = {
      {"explain", "Say of every attention how it is fused, or what stands in the way", explain_command},
      {"run", "Run a model on the embedded executor", run_command},
      {"compare", "Run two models on the same inputs and compare their outputs", compare_command},
      {"test", "Run pattern regression cases (.onnxtxt)", test_command},
      {"patterns", "List the patterns", patterns_command},
  };
  return kCommands;
}

}  // namespace attn_opt
