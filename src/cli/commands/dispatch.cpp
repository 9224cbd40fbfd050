#include "src/cli/commands/dispatch.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "src/cli/color.h"
#include "src/cli/commands/commands.h"
#include "src/cli/options/config_file.h"
#include "src/io/check/nearest_name.h"

namespace attn_opt {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, ColorMode> kColorModes = {
    {"auto", ColorMode::kAuto}, {"always", ColorMode::kAlways}, {"never", ColorMode::kNever}};

template <class T>
T value_of(const CLI::App& app, const std::string& option) {
  return app.get_option(option)->as<T>();
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.emplace_back(command.name);
  return names;
}

/// The first word may be a command that is misspelt: a model has a dot in its name, or is there.
Status check_first_word(const Arguments& arguments) {
  if (arguments.empty()) return {};
  const std::string& word = arguments.front();
  std::error_code none;
  if (word.starts_with('-') || word.find_first_of("./") != std::string::npos || fs::exists(word, none)) return {};
  const auto near = nearest_name(word, command_names());
  if (!near) return {};
  return fail(ErrorCode::kUsage, "usage", "there is no command and no file '" + word + "'", "did you mean '" + *near + "'?");
}

/// The main job has no name, but people give it one.
Arguments without_main_job(Arguments arguments) {
  std::error_code none;
  const bool is_named = !arguments.empty() && (arguments.front() == "optimize" || arguments.front() == "optimise");
  if (is_named && !fs::exists(arguments.front(), none)) arguments.erase(arguments.begin());
  return arguments;
}

/// "help COMMAND" is "COMMAND --help".
Arguments without_help_word(Arguments arguments) {
  std::error_code none;
  if (arguments.empty() || arguments.front() != "help" || fs::exists("help", none)) return arguments;
  arguments.erase(arguments.begin());
  arguments.emplace_back("--help");
  return arguments;
}

/// The words that attn-opt.toml, or the file that PARSED names, adds.
Expected<Arguments> configured(const std::string& command, const CLI::App& parsed) {
  const bool is_named = parsed.count("--config") > 0;
  if (parsed.count("--no-config") > 0) return Arguments();
  std::error_code none;
  const auto path =
      is_named ? std::optional<fs::path>(value_of<std::string>(parsed, "--config")) : find_config(fs::current_path(none));
  if (!path) return Arguments();
  return config_words(is_named ? *path : path->lexically_proximate(fs::current_path(none)), command, parsed);
}

}  // namespace

void declare_common_options(CLI::App& app) {
  app.add_option("--color", "Colour: auto (on a terminal, unless NO_COLOR is set), always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  auto* config = app.add_option("--config", "Options, instead of those of attn-opt.toml here or in a folder above");
  app.add_flag("--no-config")->description("Ignore attn-opt.toml")->excludes(config);
}

Expected<int> run_command_line(Arguments arguments) {
  arguments = without_main_job(without_help_word(std::move(arguments)));
  const auto known = commands();
  const auto command =
      std::ranges::find_if(known, [&](const Command& one) { return !arguments.empty() && one.name == arguments.front(); });
  const std::string name = command == known.end() ? "" : arguments.front();
  if (name.empty()) {
    ATTN_OPT_CHECK(check_first_word(arguments));
  } else {
    arguments.erase(arguments.begin());
  }
  DeclaredCommand chosen = declare_command(name);
  ATTN_OPT_TRY(const bool go_on, parse(*chosen.app, arguments));
  if (!go_on) return 0;
  if (name.empty() || !command->makes_text) {
    ATTN_OPT_TRY(Arguments words, configured(name, *chosen.app));
    if (!words.empty()) {
      words.insert(words.end(), arguments.begin(), arguments.end());
      chosen = declare_command(name);
      ATTN_OPT_TRY(const bool parsed_again, parse(*chosen.app, words));
      if (!parsed_again) return 0;
    }
  }
  if (chosen.app->count("--color") > 0) set_color(kColorModes.at(value_of<std::string>(*chosen.app, "--color")));
  return chosen.run();
}

}  // namespace attn_opt
