#include "src/cli/options/option_table.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "attn_opt/pattern.h"
#include "attn_opt/precondition.h"
#include "attn_opt/rewrite.h"
#include "attn_opt/target.h"
#include "src/cli/options/command_line.h"

namespace attn_opt {
namespace {

struct Row {
  std::string_view option, group, value;  ///< value: empty as declared; FILE, DIR, PATTERN, PRECONDITION and TARGET say more
};

constexpr std::string_view kMatching = "Matching", kVerification = "Verification", kGates = "Gates", kOutput = "Output",
                           kBatch = "Batch", kGeneral = "General";

constexpr std::array kTable = {
    Row{"--opset", kMatching, kOpsetWords},
    Row{"--only", kMatching, "PATTERN"},
    Row{"--disable", kMatching, "PATTERN"},
    Row{"--also", kMatching, "REWRITE"},
    Row{"--priority", kMatching, "NAME=N"},
    Row{"--rules", kMatching, "DIR"},
    Row{"--target", kMatching, "TARGET"},
    Row{"--form", kMatching, "auto|3d|4d"},
    Row{"--stage", kMatching, "attention|functions"},
    Row{"--kv-cache", kMatching, kKvCacheWords},
    Row{"--stop-after", kMatching, "N"},
    Row{"--node", kMatching, "NAME"},
    Row{"--id", kMatching, "ID"},
    Row{"--verify", kVerification, "sites|all-sites|model|off"},
    Row{"--strict", kVerification, ""},
    Row{"--exact", kVerification, ""},
    Row{"--assume", kVerification, "PRECONDITION"},
    Row{"--allow-unverified", kVerification, ""},
    Row{"--on-mismatch", kVerification, ""},
    Row{"--test-data", kVerification, "DIR"},
    Row{"--dim", kVerification, "NAME=N"},
    Row{"--rtol", kVerification, "R"},
    Row{"--atol", kVerification, "A"},
    Row{"--threads", kVerification, "N"},
    Row{"--memory-limit", kVerification, "SIZE"},
    Row{"--compute", kVerification, ""},
    Row{"--seeds", kVerification, "N"},
    Row{"--inputs", kVerification, "FILE"},
    Row{"--expected", kVerification, "FILE"},
    Row{"--require-fused", kGates, "N|all"},
    Row{"--allow-none", kGates, ""},
    Row{"--check", kGates, ""},
    Row{"--baseline", kGates, "FILE"},
    Row{"--baseline-new", kGates, ""},
    Row{"--update-baseline", kGates, ""},
    Row{"--output", kOutput, "FILE"},
    Row{"--dry-run", kOutput, ""},
    Row{"--external-data", kOutput, "auto|inline|external"},
    Row{"--allow-data-dir", kOutput, "DIR"},
    Row{"--report", kOutput, "FILE"},
    Row{"--dump-matches", kOutput, "DIR"},
    Row{"--case-out", kOutput, "FILE"},
    Row{"--rule-out", kOutput, "FILE"},
    Row{"--case-seconds", kOutput, "N"},
    Row{"--case-memory", kOutput, "SIZE"},
    Row{"--outputs", kOutput, "FILE"},
    Row{"--profile", kOutput, "FILE"},
    Row{"--update-golden", kOutput, ""},
    Row{"--root", kBatch, "DIR"},
    Row{"--jobs", kBatch, "N"},
    Row{"--timeout", kBatch, "SECONDS"},
    Row{"--process-memory", kBatch, "SIZE"},
    Row{"--fresh", kBatch, ""},
    Row{"--progress", kGeneral, "auto|always|never"},
    Row{"--color", kGeneral, "auto|always|never"},
    Row{"--config", kGeneral, "FILE"},
    Row{"--no-config", kGeneral, ""},
    Row{"--verbose", kGeneral, ""},
    Row{"--quiet", kGeneral, ""},
    Row{"--version", kGeneral, ""},
    Row{"--help", kGeneral, ""},
};

const Row* row_of(std::string_view option) {
  const auto row = std::ranges::find(kTable, option, &Row::option);
  return row == kTable.end() ? nullptr : &*row;
}

/// What stands for OPTION's value; batch writes into a folder where other commands write a file.
std::string value_in(const Row& row, const CLI::Option& option) {
  const bool is_folder = row.value == "FILE" && option.get_description().starts_with("Folder");
  return is_folder ? "DIR" : std::string(row.value);
}

const std::map<std::string, std::string_view> kExamples = {
    {"attn-opt",
     "  attn-opt model.onnx                                  what could be fused; nothing is written\n"
     "  attn-opt model.onnx -o fused.onnx                    fuse it\n"
     "  attn-opt model.onnx -o fused.onnx --require-fused all --report report.sarif\n"
     "  attn-opt model.onnx --check                          status 1 if anything could be fused\n"},
    {"attn-opt explain",
     "  attn-opt explain model.onnx\n"
     "  attn-opt explain model.onnx --node /layers.0/attn/Softmax --case-out case.onnxtxt\n"
     "  attn-opt explain model.onnx --rule-out rules/mine.rule\n"
     "  attn-opt explain --id scores.operator\n"},
    {"attn-opt run",
     "  attn-opt run model.onnx --dim batch=2 --dim seq=16\n"
     "  attn-opt run model.onnx --inputs in.npz --expected out.npz\n"},
    {"attn-opt compare", "  attn-opt compare model.onnx fused.onnx --dim seq=7,64\n"},
    {"attn-opt test", "  attn-opt test cases --report cases.xml\n"},
    {"attn-opt batch",
     "  attn-opt batch models -o fused --jobs 4 --report summary.json\n"
     "  attn-opt batch @list.txt --check\n"
     "  attn-opt batch models --baseline attn.json --update-baseline\n"},
    {"attn-opt patterns", "  attn-opt patterns --rules my_rules\n"},
    {"attn-opt completion",
     "  attn-opt completion bash > ~/.local/share/bash-completion/completions/attn-opt\n"
     "  attn-opt completion zsh > \"${fpath[1]}/_attn-opt\"\n"
     "  attn-opt completion fish > ~/.config/fish/completions/attn-opt.fish\n"},
    {"attn-opt man", "  attn-opt man | man -l -\n"},
};

/// Names that options had once. They are taken, and listed nowhere.
constexpr std::array<std::string_view, 1> kFormerNames = {"patterns"};

/// Help with the values that options take, and nothing of how CLI11 checks them.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
    for (size_t at = text.find("\n\n\n"); at != std::string::npos; at = text.find("\n\n\n", at)) text.erase(at, 1);
    return text;
  }
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    if (listed_names(*option).size() == option->get_lnames().size())
      return CLI::Formatter::make_option_name(option, is_positional);
    return name_of(*option);
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string value = value_label(*option), given = option->get_default_str();
    if (value.empty() || option->get_positional()) return {};
    return " " + value + (given.empty() ? "" : " (" + given + ")");
  }
};

}  // namespace

std::string value_label(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return {};
  const Row* row = row_of(name_of(option));
  if (row != nullptr && !row->value.empty()) return value_in(*row, option);
  std::string label;
  for (const std::string& choice : choices_of(option)) label += (label.empty() ? "" : "|") + choice;
  return label.empty() ? "VALUE" : label;
}

void polish(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag();  // declared anew, it comes last
  app.set_help_flag("-h,--help", "Print this help and exit");
  for (CLI::Option* option : app.get_options()) {
    const Row* row = row_of(name_of(*option));
    if (row == nullptr) continue;
    option->group(std::string(row->group));
    if (!row->value.empty()) option->type_name(value_in(*row, *option));
  }
  const auto examples = kExamples.find(app.get_name());
  if (examples != kExamples.end())
    app.footer(app.get_footer() + (app.get_footer().empty() ? "" : "\n") + "Examples:\n" + std::string(examples->second));
}

bool names_path(const CLI::Option& option) {
  const Row* row = row_of(name_of(option));
  return row != nullptr && (row->value == "FILE" || row->value == "DIR");
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string name = name_of(option);
  const Row* row = row_of(name);
  std::vector<std::string> choices;
  if (row != nullptr && row->value == "TARGET") return target_names();
  if (row != nullptr && row->value == "PATTERN") {
    for (const auto& pattern : patterns()) choices.emplace_back(pattern->name());
    for (const auto& rewrite : rewrites()) choices.emplace_back(rewrite->name());
    return choices;
  }
  if (row != nullptr && row->value == "REWRITE") {
    for (const auto& rewrite : rewrites()) choices.emplace_back(rewrite->name());
    choices.emplace_back("all");
    return choices;
  }
  if (row != nullptr && row->value == "PRECONDITION") {
    choices.assign(kPreconditionIds.begin(), kPreconditionIds.end());
    choices.emplace_back("none");
    return choices;
  }
  if (row != nullptr && row->value.find('|') != std::string_view::npos) {
    for (std::string& value : CLI::detail::split(std::string(row->value), '|'))
      if (value != "N") choices.push_back(std::move(value));  // a number
    return choices;
  }
  const std::string type = option.get_type_name();  // CLI11 says the values of IsMember as {a,b}
  const size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  for (const std::string& value : CLI::detail::split(type.substr(open + 1, close - open - 1), ',')) choices.push_back(value);
  return choices;
}

std::vector<std::string> listed_names(const CLI::Option& option) {
  std::vector<std::string> names = option.get_lnames();
  if (names.size() > 1)
    std::erase_if(names, [](const std::string& name) { return std::ranges::find(kFormerNames, name) != kFormerNames.end(); });
  return names;
}

std::string name_of(const CLI::Option& option) {
  const auto long_names = listed_names(option);
  return long_names.empty() ? option.get_name() : "--" + long_names.front();
}

}  // namespace attn_opt
