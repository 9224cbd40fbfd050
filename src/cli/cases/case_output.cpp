#include "src/cli/cases/case_output.h"

#include <set>

#include "src/cli/cases/rule_skeleton.h"
#include "src/io/output_file.h"

namespace attn_opt {
namespace {

namespace fs = std::filesystem;

Status write_file(const fs::path& path, const std::string& text) {
  ATTN_OPT_TRY(OutputFile file, OutputFile::create(path));
  ATTN_OPT_CHECK(file.append(text));
  return file.replace_target();
}

Expected<std::unique_ptr<CaseCutter>> cutter_of(Model model, const OptimizeArguments& arguments) {
  ATTN_OPT_TRY(const OptimizeOptions options, to_options(arguments));
  return CaseCutter::create(std::move(model), options);
}

/// What the case or rule in PATH is called.
std::string name_of_file(const fs::path& path) { return path == "-" ? "reduced" : path.stem().string(); }

/// True if an equal site was verified before, which has a case already.
bool is_repeated(const SiteReport& site) { return site.verification && site.verification->shared; }

/// SITE is of attention or of a rewrite.
template <class Site>
Status write_case_of(Model model, const Site& site, const OptimizeArguments& arguments, const fs::path& path,
                     const CaseBudget& budget) {
  ATTN_OPT_TRY(const auto cutter, cutter_of(std::move(model), arguments));
  const fs::path folder = path == "-" ? "." : path.parent_path();
  ATTN_OPT_TRY(const std::string text, reduced_case(*cutter, site, arguments, {name_of_file(path), folder}, budget));
  return write_file(path, text);
}

}  // namespace

Status write_case(Model model, const SiteReport& site, const OptimizeArguments& arguments, const fs::path& path,
                  const CaseBudget& budget) {
  return write_case_of(std::move(model), site, arguments, path, budget);
}

Status write_case(Model model, const RewriteReport& site, const OptimizeArguments& arguments, const fs::path& path,
                  const CaseBudget& budget) {
  return write_case_of(std::move(model), site, arguments, path, budget);
}

Status write_rule(Model model, const SiteReport& site, const OptimizeArguments& arguments, const fs::path& path) {
  ATTN_OPT_TRY(const auto cutter, cutter_of(std::move(model), arguments));
  ATTN_OPT_TRY(const std::string text, rule_skeleton(*cutter, site, name_of_file(path)));
  return write_file(path, text);
}

Expected<WrittenMatches> write_matches(Model model, const Report& report, const OptimizeArguments& arguments,
                                       const fs::path& folder) {
  ATTN_OPT_TRY(const auto cutter, cutter_of(std::move(model), arguments));
  ATTN_OPT_CHECK(make_folder(folder));
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
