#include <fmt/format.h>

#include <cstdio>

#include "src/cli/commands/commands.h"
#include "src/cli/options/option_table.h"

namespace attn_opt {
namespace {

struct ManArguments {};

/// TEXT in a page for troff.
std::string roff(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else if (c == '\'')
      escaped += "\\(aq";
    else if (c == '\n')
      escaped += ' ';
    else if (c == '.' && escaped.empty())
      escaped += "\\&.";
    else
      escaped += c;
  }
  return escaped;
}

std::string heading(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_snames())
    names += (names.empty() ? "" : ", ") + ("\\fB" + roff("-" + name) + "\\fR");
  for (const std::string& name : listed_names(option))
    names += (names.empty() ? "" : ", ") + ("\\fB" + roff("--" + name) + "\\fR");
  if (names.empty()) return "\\fI" + roff(option.get_name()) + "\\fR";
  const std::string value = value_label(option);
  return value.empty() ? names : names + " \\fI" + roff(value) + "\\fR";
}

/// What APP takes beside options: "MODEL", "[FILE]", "PATH ...".
std::string operands(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = "\\fI" + roff(option->get_name()) + "\\fR" + (option->get_items_expected_max() > 1 ? " ..." : "");
    text += option->get_required() ? " " + name : " [" + name + "]";
  }
  return text;
}

std::string option_lines(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty()) text += ".TP\n" + heading(*option) + "\n" + roff(option->get_description()) + ".\n";
  return text;
}

std::string examples(const CLI::App& app) {
  const std::string footer = app.get_footer();
  const size_t begin = footer.find("Examples:\n");
  if (begin == std::string::npos) return {};
  std::string lines, line;
  for (const char c : footer.substr(begin + 10)) {
    if (c != '\n')
      line += c;
    else
      lines += roff(line) + "\n", line.clear();
  }
  return ".PP\n.EX\n" + lines + ".EE\n";
}

constexpr const char* kEnd = R"(.SH EXIT STATUS
.TP
0
Done; the output was written.
.TP
1
A requirement is not met (\-\-require\-fused, \-\-check, \-\-baseline, a failing case of test). Nothing was written.
.TP
2
The command line is wrong.
.TP
3
The input cannot be read, is not valid ONNX, is beyond a limit, or needs an operator that is not supported.
.TP
4
Numbers differ.
.TP
5
The output cannot be written.
.SH FILES
.TP
attn\-opt.toml
Options, by their long names: those of the working directory or of the nearest folder above that has the file. Keys above all
tables are for the main job, explain and batch; those of a table [COMMAND] for that command ([optimize] for the main job).
The command line counts more. A key that there is not is an error.
.SH ENVIRONMENT
.TP
NO_COLOR
If set and not empty: no colour, unless \-\-color always.
.TP
GITHUB_ACTIONS
If it is true: errors are written as ::error too, which the page of a job shows.
)";

Expected<int> print_man_page(ManArguments&, const CLI::App&) {
  const DeclaredCommand main_job = declare_command("");
  std::string text = ".TH ATTN-OPT 1 \"\" \"attn-opt " ATTN_OPT_VERSION
                     "\" \"User Commands\"\n"
                     ".SH NAME\nattn\\-opt \\- rewrite attention in ONNX models into ONNX Attention nodes\n.SH SYNOPSIS\n"
                     ".B attn\\-opt\n.I INPUT\n[\\fB\\-o\\fR \\fIOUTPUT\\fR] [\\fIoptions\\fR]\n";
  for (const Command& command : commands())
    text += fmt::format(".br\n.B attn\\-opt {}\n[\\fIoptions\\fR]{}\n", roff(std::string(command.name)),
                        operands(*declare_command(std::string(command.name)).app));
  text +=
      ".SH DESCRIPTION\nFinds the attention blocks in an ONNX model, whichever exporter produced it, replaces each with an "
      "ONNX Attention node\n"
      "after checking on a built-in executor that the results do not change, and writes the model.\n" +
      examples(*main_job.app) + ".SH OPTIONS\n" + option_lines(*main_job.app) + ".SH COMMANDS\n";
  for (const Command& command : commands()) {
    const DeclaredCommand declared = declare_command(std::string(command.name));
    text += fmt::format(".SS attn\\-opt {}\n{}\n{}{}", roff(std::string(command.name)), roff(declared.app->get_description()),
                        examples(*declared.app), option_lines(*declared.app));
  }
  std::fputs((text + kEnd).c_str(), stdout);
  return 0;
}

}  // namespace

DeclaredCommand man_command() {
  return declared<ManArguments>(
      "attn-opt man", "Prints the manual page, for man -l.", [](CLI::App&, ManArguments&) {}, print_man_page);
}

}  // namespace attn_opt
