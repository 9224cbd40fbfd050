#include <algorithm>
#include <system_error>

#include "src/cli/cases/case_file.h"

namespace attn_opt {
namespace {

namespace fs = std::filesystem;

bool is_case(const fs::path& file) { return file.extension() == ".onnxtxt" && !file.string().ends_with(kGoldenEnding); }

Expected<std::vector<fs::path>> cases_in(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (is_case(entry->path())) found.push_back(entry->path());
  }
  if (error) return fail(ErrorCode::kInvalidInput, folder.string(), "cannot be read: " + error.message());
  if (found.empty()) return fail(ErrorCode::kUsage, folder.string(), "holds no case (.onnxtxt)");
  std::ranges::sort(found);
  return found;
}

}  // namespace

Expected<std::vector<fs::path>> find_cases(const std::vector<std::string>& paths) {
  std::vector<fs::path> cases;
  for (const fs::path path : paths) {
    std::error_code none;
    if (fs::is_directory(path, none)) {
      ATTN_OPT_TRY(const auto found, cases_in(path));
      cases.insert(cases.end(), found.begin(), found.end());
    } else if (!fs::exists(path, none)) {
      return fail(ErrorCode::kInvalidInput, path.string(), "cannot be read: no such file or folder");
    } else if (!is_case(path)) {
      return fail(ErrorCode::kUsage, path.string(), "is no case: those end in .onnxtxt");
    } else {
      cases.push_back(path);
    }
  }
  return cases;
}

}  // namespace attn_opt
