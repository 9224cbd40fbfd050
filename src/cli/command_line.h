// What the commands share: how they parse their arguments, and how loud they are.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attn_opt/status.h"

namespace attn_opt {

using Arguments = std::vector<std::string>;

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

struct Verbosity {
  int verbose = 0;
  bool quiet = false;
};

/// -v and -q.
void declare_verbosity(CLI::App& app, Verbosity& verbosity);
/// Log lines go to standard error.
void set_up_log(const Verbosity& verbosity);

/// An option that takes one value at each use, and may be used repeatedly; VALUES may hold commas only if
/// SPLIT.
CLI::Option* declare_list(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                          const std::string& description, bool split = false);

}  // namespace attn_opt
