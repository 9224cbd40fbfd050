#include "src/cli/options/optimize_arguments.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "attn_opt/rules.h"
#include "src/cli/options/command_line.h"
#include "src/cli/options/option_table.h"
#include "src/io/check/nearest_name.h"
#include "src/optimizer/kv_cache.h"
#include "src/optimizer/rewriting.h"

namespace attn_opt {
namespace {

constexpr int kLeastOpset = 23, kGreatestOpset = 25;
constexpr std::string_view kKeep = "keep";

const std::map<std::string, Form> kForms = {{"auto", Form::kAuto}, {"3d", Form::k3d}, {"4d", Form::k4d}};
const std::map<std::string, Stage> kStages = {{"attention", Stage::kAttention}, {"functions", Stage::kFunctions}};
/// What --assume is given where it lists nothing.
const std::vector<std::string> kNothing = {"none"};
const std::map<std::string, VerifyMode> kVerifyModes = {{"off", VerifyMode::kOff},
                                                        {"sites", VerifyMode::kSites},
                                                        {"all-sites", VerifyMode::kAllSites},
                                                        {"model", VerifyMode::kModel}};

/// What WORD, the value of OPTION, stands for. Error: kUsage.
template <class T>
Expected<T> meaning(const std::map<std::string, T>& words, const std::string& word, const std::string& option) {
  if (const auto known = words.find(word); known != words.end()) return known->second;
  std::vector<std::string> all;
  all.reserve(words.size());
  for (const auto& [name, value] : words) all.push_back(name);
  return fail(ErrorCode::kUsage, option, "there is no '" + word + "'", suggestion(word, all));
}

/// The opset that WORD, of --opset, stands for beside TARGET. Error: kUsage.
Expected<int> opset_of(const std::string& word, const TargetRules& target) {
  if (word.empty()) return target.keeps_opset ? kOwnOpset : kEditOpset;
  if (word == kKeep) return kOwnOpset;
  int opset = 0;
  const char* const end = word.data() + word.size();
  const auto read = std::from_chars(word.data(), end, opset);
  if (read.ptr != end || read.ec != std::errc())
    return fail(ErrorCode::kUsage, "--opset", "'" + word + "' is no value of it", "it takes " + std::string(kOpsetWords));
  if (opset < kLeastOpset || opset > kGreatestOpset)
    return fail(ErrorCode::kUsage, "--opset", "opset " + word + " cannot be written",
                "those that can are " + std::to_string(kLeastOpset) + " to " + std::to_string(kGreatestOpset));
  return opset;
}

/// What WORD, of --kv-cache, stands for. Error: kUsage.
Expected<KvCacheOptions> kv_cache_of(const std::string& word) {
  constexpr std::string_view kStatic = "static", kStaticOf = "static=";
  if (word == "growing") return KvCacheOptions{};
  KvCacheOptions options{true, 0};
  if (word == kStatic) return options;
  const char* const end = word.data() + word.size();
  const bool has_number = word.starts_with(kStaticOf);
  if (has_number) {
    const auto read = std::from_chars(word.data() + kStaticOf.size(), end, options.length);
    if (read.ptr == end && read.ec == std::errc() && options.length > 0) return options;
  }
  return fail(ErrorCode::kUsage, "--kv-cache", "'" + word + "' is no value of it", "it takes " + std::string(kKvCacheWords));
}

std::vector<std::string> known_patterns(const OptimizeOptions& options) {
  std::vector<std::string> known;
  for (const auto& pattern : patterns()) known.emplace_back(pattern->name());
  for (const auto& rule : options.rules) known.emplace_back(rule->name());
  for (const auto& rewrite : options.rewrites) known.emplace_back(rewrite->name());
  for (const auto& rewrite : rewrites()) known.emplace_back(rewrite->name());
  return known;
}

bool is_known(std::string_view name, const OptimizeOptions& options) {
  const auto known = known_patterns(options);
  return std::ranges::find(known, name) != known.end();
}

/// Adds MORE, by names that nothing else has.
template <class T>
Status add_named(const std::vector<T>& more, std::vector<T>& to, const OptimizeOptions& options) {
  for (const auto& one : more) {
    if (is_known(one->name(), options))
      return fail(ErrorCode::kUsage, "patterns", "there is another pattern '" + std::string(one->name()) + "'");
    to.push_back(one);
  }
  return {};
}

/// What NAME=N of --priority says.
Status read_priority(const std::string& text, OptimizeOptions& options) {
  const size_t equals = text.find('=');
  int number = 0;
  const char* end = text.data() + text.size();
  const bool is_number = equals != std::string::npos && std::from_chars(text.data() + equals + 1, end, number).ptr == end &&
                         equals + 1 < text.size();
  if (!is_number)
    return fail(ErrorCode::kUsage, "--priority", "'" + text + "' is no priority", "NAME=N, as --priority rms-norm=200");
  options.priorities[text.substr(0, equals)] = number;
  return {};
}

Status check_patterns(const std::vector<std::string>& names, const OptimizeOptions& options, const std::string& option) {
  for (const std::string& name : names) {
    if (is_known(name, options)) continue;
    return fail(ErrorCode::kUsage, option, "there is no pattern '" + name + "'", suggestion(name, known_patterns(options)));
  }
  return {};
}

}  // namespace

void declare_optimize_options(CLI::App& app, OptimizeArguments& arguments) {
  app.add_option("--opset", arguments.opset,
                 "Opset to raise the model to; one above it is never lowered. keep: the model's own")
      ->default_str(std::to_string(kEditOpset));
  declare_list(app, "--only", arguments.only, "Use only this pattern (repeatable, or a list with commas)", true);
  declare_list(app, "--disable", arguments.disable, "Disable this pattern (repeatable, or a list with commas)", true);
  declare_list(app, "--also", arguments.also, "Also apply this built-in rewrite, or all (repeatable, or a list with commas)",
               true);
  declare_list(
      app, "--priority", arguments.priorities,
      "Priority of a rewrite (those above 100 run before attention is fused) or of a pattern, which has 100 (repeatable)");
  declare_rule_folders(app, arguments.patterns);
  app.add_option("--target", arguments.target,
                 "Runtime whose restrictions the written nodes satisfy: portable (all agree), spec, ort, openvino, ort-contrib "
                 "(operators of "
                 "com.microsoft), cuda, directml or webgpu")
      ->capture_default_str();
  app.add_option("--form", arguments.form, "Shape of the operands of written nodes: auto, 3d or 4d")
      ->check(CLI::IsMember(kForms))
      ->capture_default_str();
  app.add_option("--stage", arguments.stage,
                 "What is written: attention (Attention nodes) or functions (calls of local functions, at the model's opset)")
      ->check(CLI::IsMember(kStages))
      ->capture_default_str();
  app.add_option(
         "--kv-cache", arguments.kv_cache,
         "Caches that grow with each step: growing (as they are), static or static=N: buffers of N rows, and the model is "
         "called otherwise")
      ->capture_default_str();
  app.add_option("--verify", arguments.verify,
                 "What is run before and after: off, sites, all-sites (equal ones too), model (sites and the whole model)")
      ->check(CLI::IsMember(kVerifyModes))
      ->capture_default_str();
  auto* strict = app.add_flag("--strict", arguments.strict, "Assume nothing but what --assume lists");
  auto* exact = app.add_flag("--exact", arguments.exact, "As --strict, and what is NaN stays NaN");
  declare_list(app, "--assume", arguments.assume,
               "Assume only these preconditions (repeatable, or a list with commas); none: nothing", true);
  app.add_flag("--allow-unverified", arguments.allow_unverified, "Fuse sites that cannot be run, too")
      ->excludes(strict)
      ->excludes(exact);
  app.add_option("--stop-after", arguments.stop_after, "Fuse at most so many sites")->check(CLI::NonNegativeNumber);
}

void declare_rule_folders(CLI::App& app, std::vector<std::string>& folders) {
  declare_list(app, "--rules,--patterns", folders, "Folder of rules to use beside the patterns (repeatable)");
}

std::string to_words(const OptimizeArguments& arguments) {
  const OptimizeArguments usual;
  std::string words;
  const auto say = [&words](const std::string& option) { words += (words.empty() ? "" : " ") + option; };
  for (const std::string& pattern : arguments.only) say("--only " + pattern);
  for (const std::string& pattern : arguments.disable) say("--disable " + pattern);
  for (const std::string& folder : arguments.patterns) say("--rules " + folder);
  for (const std::string& rewrite : arguments.also) say("--also " + rewrite);
  for (const std::string& priority : arguments.priorities) say("--priority " + priority);
  if (!arguments.opset.empty()) say("--opset " + arguments.opset);
  if (arguments.target != usual.target) say("--target " + arguments.target);
  if (arguments.form != usual.form) say("--form " + arguments.form);
  if (arguments.stage != usual.stage) say("--stage " + arguments.stage);
  if (arguments.kv_cache != usual.kv_cache) say("--kv-cache " + arguments.kv_cache);
  if (arguments.verify != usual.verify) say("--verify " + arguments.verify);
  if (arguments.strict) say("--strict");
  if (arguments.exact) say("--exact");
  for (const std::string& id : arguments.assume) say("--assume " + id);
  if (arguments.allow_unverified) say("--allow-unverified");
  if (arguments.stop_after >= 0) say("--stop-after " + std::to_string(arguments.stop_after));
  return words;
}

namespace {

Status check_rule_folders(const std::vector<std::string>& folders) {
  std::error_code none;
  for (const std::string& folder : folders)
    if (std::filesystem::is_regular_file(folder, none))
      return fail(ErrorCode::kInvalidInput, folder, "is a file; --rules takes folders",
                  "give the folder that it lies in: all its .rule files are read");
  return {};
}

}  // namespace

Expected<OptimizeOptions> to_options(const OptimizeArguments& arguments) {
  const auto target = target_named(arguments.target);
  if (!target) {
    return fail(ErrorCode::kUsage, "--target", "there is no target '" + arguments.target + "'",
                suggestion(arguments.target, target_names()));
  }
  OptimizeOptions options;
  ATTN_OPT_CHECK(check_rule_folders(arguments.patterns));
  ATTN_OPT_TRY(Rules rules, load_rules(arguments.patterns));
  options.rules = std::move(rules.patterns);
  options.rewrites = std::move(rules.rewrites);
  ATTN_OPT_CHECK(add_named(arguments.more_patterns, options.rules, options));
  ATTN_OPT_CHECK(add_named(arguments.more_rewrites, options.rewrites, options));
  ATTN_OPT_CHECK(check_patterns(arguments.only, options, "--only"));
  ATTN_OPT_CHECK(check_patterns(arguments.disable, options, "--disable"));
  ATTN_OPT_TRY(options.opset, opset_of(arguments.opset, rules_of(*target)));
  options.only = arguments.only;
  options.disable = arguments.disable;
  options.also = arguments.also;
  for (const std::string& priority : arguments.priorities) ATTN_OPT_CHECK(read_priority(priority, options));
  ATTN_OPT_CHECK(chosen_rewrites(options));
  options.emit.target = *target;
  ATTN_OPT_TRY(options.emit.form, meaning(kForms, arguments.form, "--form"));
  ATTN_OPT_TRY(options.emit.stage, meaning(kStages, arguments.stage, "--stage"));
  ATTN_OPT_TRY(options.verify, meaning(kVerifyModes, arguments.verify, "--verify"));
  ATTN_OPT_TRY(options.kv_cache, kv_cache_of(arguments.kv_cache));
  ATTN_OPT_CHECK(check_opset(options));
  ATTN_OPT_CHECK(check_kv_cache(options));
  options.verification.share_verdicts = options.verify != VerifyMode::kAllSites;
  options.strict = arguments.strict;
  options.exact = arguments.exact;
  options.allow_unverified = arguments.allow_unverified;
  if (!arguments.assume.empty()) options.assume = arguments.assume == kNothing ? std::vector<std::string>() : arguments.assume;
  ATTN_OPT_CHECK(accepted_by(options));
  options.stop_after = arguments.stop_after;
  return options;
}

}  // namespace attn_opt
