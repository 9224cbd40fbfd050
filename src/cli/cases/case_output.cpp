#include "src/cli/cases/case_output.h"

#include <set>

#include "src/io/output_file.h"

namespace attn_opt {
namespace {

namespace fs = std::filesystem;

Status write_file(const fs::path& path, const std::string& text) {
  ATTN_OPT_TRY(OutputFile file, OutputFile::create(path));
  ATTN_OPT_CHECK(file.append(text));
  return file.replace_target();
}

/// True if an equal site was verified before, which has a case already.
bool is_repeated(const SiteReport& site) { return site.verification && site.verification->shared; }

}  // namespace

Status write_case(Model model, const SiteReport& site, const OptimizeArguments& arguments, const fs::path& path,
                  const CaseBudget& budget) {
  ATTN_OPT_TRY(const OptimizeOptions options, to_options(arguments));
  ATTN_OPT_TRY(const auto cutter, CaseCutter::create(std::move(model), options));
  const std::string name = path == "-" ? "reduced" : path.stem().string();
  ATTN_OPT_TRY(const std::string text,
               reduced_case(*cutter, site, arguments, {name, path == "-" ? "." : path.parent_path()}, budget));
  return write_file(path, text);
}

Expected<WrittenMatches> write_matches(Model model, const Report& report, const OptimizeArguments& arguments,
                                       const fs::path& folder) {
  ATTN_OPT_TRY(const OptimizeOptions options, to_options(arguments));
  ATTN_OPT_TRY(const auto cutter, CaseCutter::create(std::move(model), options));
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return fail(ErrorCode::kOutput, folder.string(), "cannot be made: " + error.message());
  WrittenMatches matches;
  std::set<std::string> written;
  for (const SiteReport& site : report.sites) {
    if (site.outcome != SiteReport::Outcome::kFused || is_repeated(site)) continue;
    const auto unnamed = reduced_case(*cutter, site, arguments, {"match", folder}, {});
    if (!unnamed) {
      matches.left_out.push_back(unnamed.error());
      continue;
    }
    if (!written.insert(*unnamed).second) continue;
    const std::string name = "match_" + std::to_string(++matches.cases);
    const std::string text = "# CASE   " + name + unnamed->substr(unnamed->find('\n'));
    ATTN_OPT_CHECK(write_file(folder / (name + ".onnxtxt"), text));
  }
  return matches;
}

}  // namespace attn_opt
