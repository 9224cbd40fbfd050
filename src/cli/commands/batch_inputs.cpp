#include "src/cli/commands/batch_inputs.h"

#include <algorithm>
#include <iostream>
#include <sstream>

#include "src/cli/text_file.h"

namespace attn_opt {
namespace {

namespace fs = std::filesystem;

fs::path whole(const fs::path& path) {
  std::error_code none;
  const fs::path absolute = fs::absolute(path, none).lexically_normal();
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

bool is_below(const fs::path& path, const fs::path& folder) {
  const auto [in_folder, unused] = std::ranges::mismatch(folder, path);
  return in_folder == folder.end();
}

Status add_folder(const fs::path& folder, const fs::path& outputs, std::vector<fs::path>& models) {
  std::error_code error;
  const fs::path skipped = outputs.empty() || is_below(whole(folder), whole(outputs)) ? fs::path() : whole(outputs);
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code none;
    if (entry->is_directory(none) && (entry->path().filename() == ".attn-opt" || whole(entry->path()) == skipped))
      entry.disable_recursion_pending();
    else if (entry->path().extension() == ".onnx" && !entry->is_directory(none))
      models.push_back(entry->path());
  }
  if (error) return fail(ErrorCode::kInvalidInput, folder.string(), "cannot be read: " + error.message());
  return {};
}

Status add_path(const std::string& word, const fs::path& outputs, std::vector<fs::path>& models) {
  std::error_code none;
  if (word == "-")
    return fail(ErrorCode::kUsage, "batch", "a model of a batch is a file", "@- reads a list of them from standard input");
  if (fs::is_directory(word, none)) return add_folder(word, outputs, models);
  models.emplace_back(word);
  return {};
}

Status add_lines(std::istream& lines, const fs::path& outputs, std::vector<fs::path>& models) {
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    ATTN_OPT_CHECK(add_path(line, outputs, models));
  }
  return {};
}

Status add_list(const std::string& list, const fs::path& outputs, std::vector<fs::path>& models) {
  if (list == "-") return add_lines(std::cin, outputs, models);
  ATTN_OPT_TRY(std::string text, read_text(list));
  std::istringstream lines(std::move(text));
  return add_lines(lines, outputs, models);
}

fs::path common_folder(const std::vector<fs::path>& models) {
  fs::path common = whole(models.front()).parent_path();
  for (const fs::path& model : models)
    while (!is_below(whole(model).parent_path(), common)) common = common.parent_path();
  return common;
}

}  // namespace

Expected<std::vector<BatchInput>> batch_inputs(const std::vector<std::string>& words, const fs::path& root,
                                               const fs::path& outputs) {
  std::vector<fs::path> models;
  for (const std::string& word : words) {
    ATTN_OPT_CHECK(word.starts_with('@') ? add_list(word.substr(1), outputs, models) : add_path(word, outputs, models));
  }
  const bool has_list = std::ranges::any_of(words, [](const std::string& word) { return word.starts_with('@'); });
  if (models.empty() && has_list) return std::vector<BatchInput>();
  if (models.empty()) return fail(ErrorCode::kUsage, "batch", "there are no models", "folders are searched for .onnx files");
  const fs::path begin = root.empty() ? common_folder(models) : whole(root);
  std::vector<BatchInput> inputs;
  for (const fs::path& model : models) {
    if (!is_below(whole(model), begin))
      return fail(ErrorCode::kUsage, "--root", model.string() + " is not below " + begin.string());
    inputs.push_back({model, whole(model).lexically_relative(begin)});
  }
  std::ranges::stable_sort(inputs, {}, &BatchInput::below_root);
  const auto is_same = [](const BatchInput& a, const BatchInput& b) { return a.below_root == b.below_root; };
  inputs.erase(std::unique(inputs.begin(), inputs.end(), is_same), inputs.end());  // NOLINT(modernize-use-ranges)
  return inputs;
}

}  // namespace attn_opt
