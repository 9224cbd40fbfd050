#include <fmt/format.h>

#include <cstdio>

#include "src/cli/commands/commands.h"
#include "src/cli/commands/completions.h"

namespace attn_opt {
namespace {

struct CompletionArguments {
  std::string shell;
};

void declare(CLI::App& app, CompletionArguments& given) {
  app.add_option("SHELL", given.shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

Expected<int> print_completions(CompletionArguments& given, const CLI::App&) {
  const std::string text = given.shell == "bash"  ? bash_completions()
                           : given.shell == "zsh" ? zsh_completions()
                                                  : fish_completions();
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

DeclaredCommand completion_command() {
  return declared("attn-opt completion", "Prints what a shell needs to complete the words of attn-opt.", declare,
                  print_completions);
}

}  // namespace attn_opt
