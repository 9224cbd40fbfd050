#include "src/cli/options/config_file.h"

#include <algorithm>
#include <map>

#include "src/cli/commands/commands.h"
#include "src/cli/options/option_table.h"
#include "src/cli/options/toml.h"
#include "src/cli/report_files.h"
#include "src/cli/text_file.h"
#include "src/io/check/nearest_name.h"

namespace attn_opt {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMainJob = "optimize";
using Settings = std::vector<TomlSetting>;

/// The apps of all commands that take options from the file, by the names of their tables.
std::map<std::string, std::unique_ptr<CLI::App>> apps() {
  std::map<std::string, std::unique_ptr<CLI::App>> all;
  all.emplace(kMainJob, declare_command("").app);
  for (const Command& command : commands()) {
    auto app = declare_command(std::string(command.name)).app;
    if (!command.makes_text) all.emplace(command.name, std::move(app));
  }
  return all;
}

const CLI::Option* option_named(const CLI::App& app, const std::string& key) {
  static const std::vector<std::string> kNever = {"help", "version", "config", "no-config"};
  if (key.empty() || key.front() == '-' || std::ranges::find(kNever, key) != kNever.end()) return nullptr;
  return app.get_option_no_throw("--" + key);
}

std::vector<std::string> keys_of(const std::vector<const CLI::App*>& apps) {
  std::vector<std::string> keys;
  for (const CLI::App* app : apps)
    for (const CLI::Option* option : app->get_options())
      for (const std::string& name : option->get_lnames())
        if (option_named(*app, name) && std::ranges::find(keys, name) == keys.end()) keys.push_back(name);
  return keys;
}

Expected<Settings> read_settings(const fs::path& path) {
  ATTN_OPT_TRY(const std::string text, read_text(path));
  return parse_toml(text, path.string());
}

std::string place_of(const fs::path& path, const TomlSetting& setting) {
  return path.string() + ":" + std::to_string(setting.line);
}

/// Every key must be one of its table.
Status check_keys(const fs::path& path, const Settings& settings) {
  const auto all = apps();
  for (const TomlSetting& item : settings) {
    std::vector<const CLI::App*> owners;
    if (item.table.empty()) {
      for (const char* name : {kMainJob, "explain", "batch"}) owners.push_back(all.at(name).get());
    } else {
      const auto table = all.find(item.table);
      if (table == all.end()) {
        std::vector<std::string> tables;
        tables.reserve(all.size());
        for (const auto& [name, app] : all) tables.push_back(name);
        return fail(ErrorCode::kUsage, place_of(path, item), "there is no table '" + item.table + "'",
                    suggestion(item.table, tables));
      }
      owners.push_back(table->second.get());
    }
    if (std::ranges::any_of(owners, [&](const CLI::App* app) { return option_named(*app, item.key) != nullptr; })) continue;
    return fail(ErrorCode::kUsage, place_of(path, item), "there is no option '" + item.key + "'",
                suggestion(item.key, keys_of(owners)));
  }
  return {};
}

/// VALUE of OPTION as it would be said in the working directory.
std::string from_folder(const fs::path& folder, const CLI::Option& option, const std::string& value) {
  if (!names_path(option) || folder.empty()) return value;
  if (name_of(option) == "--report") {
    const size_t colon = value.find(':');
    const bool has_format = colon != std::string::npos && report_format_named(value.substr(0, colon));
    const std::string path = has_format ? value.substr(colon + 1) : value;
    return path == "-" ? value : (has_format ? value.substr(0, colon + 1) : "") + (folder / path).string();
  }
  return value == "-" ? value : (folder / value).string();
}

Status add_words(const fs::path& path, const TomlSetting& item, const CLI::Option& option, Arguments& words) {
  const std::string name = name_of(option);
  if (option.get_items_expected_max() > 0) {
    for (const std::string& value : item.values) words.push_back(name + "=" + from_folder(path.parent_path(), option, value));
    return {};
  }
  const std::string value = item.values.size() == 1 ? item.values.front() : "an array";
  if (value == "true")
    words.push_back(name);
  else if (value != "false")
    return fail(ErrorCode::kUsage, place_of(path, item), item.key + " is true or false, not '" + value + "'");
  return {};
}

bool is_overruled(const CLI::App& parsed, const CLI::Option& option) {
  if (option.count() > 0) return true;
  const auto excluded = option.get_excludes();
  return std::ranges::any_of(parsed.get_options(), [&](const CLI::Option* other) {
    return other->count() > 0 && (excluded.contains(const_cast<CLI::Option*>(other)));
  });
}

}  // namespace

std::optional<fs::path> find_config(const fs::path& folder) {
  std::error_code none;
  for (fs::path at = fs::absolute(folder, none);; at = at.parent_path()) {
    if (fs::is_regular_file(at / "attn-opt.toml", none)) return at / "attn-opt.toml";
    if (at == at.parent_path()) return std::nullopt;
  }
}

Expected<Arguments> config_words(const fs::path& path, const std::string& command, const CLI::App& parsed) {
  ATTN_OPT_TRY(const Settings settings, read_settings(path));
  ATTN_OPT_CHECK(check_keys(path, settings));
  const std::string own_table = command.empty() ? kMainJob : command;
  const bool takes_common = own_table == kMainJob || own_table == "explain" || own_table == "batch";
  std::map<const CLI::Option*, const TomlSetting*> chosen;
  for (const bool of_table : {false, true}) {
    for (const TomlSetting& item : settings) {
      const bool applies = of_table ? item.table == own_table : item.table.empty() && takes_common;
      const CLI::Option* option = applies ? option_named(parsed, item.key) : nullptr;
      if (option != nullptr && !is_overruled(parsed, *option)) chosen[option] = &item;
    }
  }
  Arguments words;
  for (const auto& [option, item] : chosen) {
    ATTN_OPT_CHECK(add_words(path, *item, *option, words));
  }
  return words;
}

}  // namespace attn_opt
