// What the commands share: how they parse their arguments.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attn_opt/status.h"
#include "src/cli/options/arguments.h"

namespace attn_opt {

/// A command whose options are declared, bound to where their values go.
struct DeclaredCommand {
  std::unique_ptr<CLI::App> app;
  /// Once APP has parsed. Returns the exit status of a run that came to its end.
  std::function<Expected<int>()> run;
};

/// The command NAME, whose values go to a Given.
template <class Given>
DeclaredCommand declared(const std::string& name, const std::string& description, void (*declare)(CLI::App&, Given&),
                         Expected<int> (*run)(Given&, const CLI::App&)) {
  auto given = std::make_shared<Given>();
  auto app = std::make_unique<CLI::App>(description, name);
  declare(*app, *given);
  const CLI::App* parsed = app.get();
  return {std::move(app), [given, parsed, run] { return run(*given, *parsed); }};
}

/// False: --help or --version was asked for and has been printed. Error: kUsage.
Expected<bool> parse(CLI::App& app, const Arguments& arguments);

/// An option that takes one value at each use, and may be used repeatedly; VALUES may hold commas only if
/// SPLIT.
CLI::Option* declare_list(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                          const std::string& description, bool split = false);

/// The value of OPTION is a number of bytes, as 512MB.
void takes_size(CLI::Option& option);

}  // namespace attn_opt
