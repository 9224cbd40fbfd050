#include "src/cli/commands/completions.h"

#include <fmt/format.h>

#include "src/cli/commands/commands.h"
#include "src/cli/options/option_table.h"

namespace attn_opt {
namespace {

struct Described {
  std::string name, summary;  ///< name "": the main job
  DeclaredCommand declared;
};

std::vector<Described> described_commands() {
  std::vector<Described> all;
  all.push_back({"", "", declare_command("")});
  for (const Command& command : commands())
    all.push_back({std::string(command.name), std::string(command.summary), declare_command(std::string(command.name))});
  return all;
}

std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  return app.get_options(
      [](const CLI::Option* option) { return !option->get_lnames().empty() || !option->get_snames().empty(); });
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : listed_names(option)) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  return names;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

/// TEXT within single quotes of a shell.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// TEXT in a specification of zsh's _arguments, within single quotes.
std::string zsh_escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'')
      result += "'\\''";
    else if (c == '[' || c == ']' || c == ':' || c == '\\')
      result += {'\\', c};
    else
      result += c;
  }
  return result;
}

/// The words of a positional: of the commands that have a choice there.
std::vector<std::string> positional_choices(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options())
    if (option->get_positional() && option->get_lnames().empty() && option->get_snames().empty()) {
      auto choices = choices_of(*option);
      if (!choices.empty()) return choices;
    }
  return {};
}

/// "--form) words='auto 3d 4d' ;;" for each option of APP that takes a value.
std::string bash_values(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : options_of(app)) {
    if (!takes_value(*option)) continue;
    const auto choices = choices_of(*option);
    const std::string words = choices.empty() ? names_path(*option) ? "files=1" : "nothing=1"
                                              : fmt::format("words={}", quoted(fmt::format("{}", fmt::join(choices, " "))));
    text += fmt::format("        {}) {} ;;\n", fmt::join(names_of(*option), "|"), words);
  }
  return text;
}

std::string bash_command(const Described& command) {
  const CLI::App& app = *command.declared.app;
  std::vector<std::string> names;
  for (const CLI::Option* option : options_of(app))
    for (const std::string& name : names_of(*option)) names.push_back(name);
  const auto choices = positional_choices(app);
  return fmt::format("    {})\n      case $previous in\n{}      esac\n      options='{}'\n      operands='{}' ;;\n",
                     command.name.empty() ? "''" : command.name, bash_values(app), fmt::join(names, " "),
                     fmt::join(choices, " "));
}

constexpr const char* kBashEnd = R"(  esac
  COMPREPLY=()
  if [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  elif [[ -n $files ]]; then
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$current"))
  elif [[ -n $nothing ]]; then
    return
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  else
    compopt -o filenames 2>/dev/null
    [[ $position == 1 ]] && operands="$operands $commands"
    COMPREPLY=($(compgen -W "$operands" -- "$current") $(compgen -f -- "$current"))
  fi
}
complete -F _attn_opt attn-opt
)";

std::string zsh_option(const CLI::Option& option) {
  const auto names = names_of(option);
  std::string value;
  if (takes_value(option)) {
    const auto choices = choices_of(option);
    value = fmt::format(":value:{}", !choices.empty()     ? fmt::format("({})", fmt::join(choices, " "))
                                     : names_path(option) ? "_files"
                                                          : " ");
  }
  std::string text;
  for (const std::string& name : names) {
    const std::string separator = value.empty() ? "" : name.starts_with("--") ? "=" : "+";
    text += fmt::format("      '*{}{}[{}]{}' \\\n", name, separator, zsh_escaped(option.get_description()), value);
  }
  return text;
}

}  // namespace

std::string bash_completions() {
  std::string names, cases;
  for (const Described& command : described_commands()) {
    names += (names.empty() ? "" : " ") + command.name;
    cases += bash_command(command);
  }
  return "# Completions of attn-opt for bash; made by: attn-opt completion bash\n_attn_opt() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} position=$COMP_CWORD\n"
         "  local command='' commands='" +
         names +
         "' options='' operands='' words='' files='' nothing=''\n"
         "  [[ $current == '=' ]] && current=''\n"
         "  [[ $previous == '=' ]] && previous=${COMP_WORDS[COMP_CWORD-2]}\n"
         "  [[ $position -gt 1 && \" $commands \" == *\" ${COMP_WORDS[1]} \"* ]] && command=${COMP_WORDS[1]}\n"
         "  case $command in\n" +
         cases + kBashEnd;
}

std::string zsh_completions() {
  std::string summaries, cases;
  for (const Described& command : described_commands()) {
    const CLI::App& app = *command.declared.app;
    std::string specifications;
    for (const CLI::Option* option : options_of(app)) specifications += zsh_option(*option);
    const auto choices = positional_choices(app);
    const std::string operands = choices.empty() ? "_files" : fmt::format("({})", fmt::join(choices, " "));
    if (command.name.empty()) {
      cases += fmt::format("    *) _arguments -S \\\n{}      '*:model:_files' ;;\n", specifications);
    } else {
      summaries += fmt::format("    '{}:{}'\n", command.name, zsh_escaped(command.summary));
      cases = fmt::format("    {}) shift words; (( CURRENT-- )); _arguments -S \\\n{}      '*:operand:{}' ;;\n", command.name,
                          specifications, operands) +
              cases;
    }
  }
  return "#compdef attn-opt\n# Completions of attn-opt for zsh; made by: attn-opt completion zsh\n_attn_opt() {\n"
         "  local -a commands\n  commands=(\n" +
         summaries +
         "  )\n"
         "  if (( CURRENT == 2 )) && [[ ${words[2]} != -* ]]; then\n"
         "    _describe 'command' commands\n    _files\n    return\n  fi\n"
         "  case ${words[2]} in\n" +
         cases +
         "  esac\n}\n"
         "if [[ ${funcstack[1]} == _attn_opt ]]; then _attn_opt \"$@\"; else compdef _attn_opt attn-opt; fi\n";
}

std::string fish_completions() {
  std::string names, lines;
  for (const Described& command : described_commands()) {
    const CLI::App& app = *command.declared.app;
    const std::string when = quoted(command.name.empty() ? "not __fish_seen_subcommand_from $__attn_opt_commands"
                                                         : "__fish_seen_subcommand_from " + command.name);
    if (!command.name.empty()) {
      names += " " + command.name;
      lines +=
          fmt::format("complete -c attn-opt -n __fish_use_subcommand -a {} -d {}\n", command.name, quoted(command.summary));
    }
    for (const CLI::Option* option : options_of(app)) {
      std::string line = "complete -c attn-opt -n " + when;
      for (const std::string& name : option->get_snames()) line += " -s " + name;
      for (const std::string& name : listed_names(*option)) line += " -l " + name;
      const auto choices = choices_of(*option);
      if (takes_value(*option)) line += names_path(*option) ? " -r" : " -x";
      if (!choices.empty()) line += " -a " + quoted(fmt::format("{}", fmt::join(choices, " ")));
      lines += line + " -d " + quoted(option->get_description()) + "\n";
    }
    for (const std::string& choice : positional_choices(app))
      lines += fmt::format("complete -c attn-opt -n {} -a {}\n", when, choice);
  }
  return "# Completions of attn-opt for fish; made by: attn-opt completion fish\nset -g __attn_opt_commands" + names + "\n" +
         lines;
}

}  // namespace attn_opt
