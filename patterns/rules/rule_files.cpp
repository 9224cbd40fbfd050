// Folders of rules.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "attn_opt/rules.h"
#include "patterns/rules/rule_search.h"

namespace attn_opt {
namespace {

namespace fs = std::filesystem;

/// The files *.rule of FOLDER, by name.
Expected<std::vector<fs::path>> rule_files(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".rule") files.push_back(entry.path());
  if (error) return fail(ErrorCode::kInvalidInput, folder, "cannot be read: " + error.message());
  if (files.empty())
    return fail(ErrorCode::kInvalidInput, folder, "holds no rule",
                "rules are files *.rule; attn-opt explain MODEL --rule-out F.rule writes one");
  std::ranges::sort(files);
  return files;
}

Expected<Rule> read_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.is_open() || stream.bad()) return fail(ErrorCode::kInvalidInput, file.string(), "cannot be read");
  return read_rule(text, file.string());
}

Status add(Rule rule, const std::string& where, Rules& rules) {
  if (writes_attention(rule)) {
    ATTN_OPT_TRY(auto pattern, pattern_of(std::move(rule), where));
    rules.patterns.push_back(std::move(pattern));
  } else {
    ATTN_OPT_TRY(auto rewrite, rewrite_of(std::move(rule), where));
    rules.rewrites.push_back(std::move(rewrite));
  }
  return {};
}

}  // namespace

Expected<Rules> load_rules(const std::vector<std::string>& folders) {
  std::set<std::string, std::less<>> names;
  for (const auto& pattern : patterns()) names.emplace(pattern->name());
  for (const auto& rewrite : rewrites()) names.emplace(rewrite->name());
  std::set<fs::path> read;
  Rules rules;
  for (const std::string& folder : folders) {
    std::error_code none;
    if (!read.insert(fs::weakly_canonical(folder, none)).second) continue;
    ATTN_OPT_TRY(const auto files, rule_files(folder));
    for (const fs::path& file : files) {
      ATTN_OPT_TRY(Rule rule, read_file(file));
      if (!names.emplace(rule.name).second)
        return fail(ErrorCode::kInvalidInput, file.string(), "there is another pattern '" + rule.name + "'",
                    "call the rule otherwise");
      ATTN_OPT_CHECK(add(std::move(rule), file.string(), rules));
    }
  }
  return rules;
}

}  // namespace attn_opt
