#include "tests/metamorphic/variant.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <tuple>

#include "attn_opt/model_io.h"
#include "attn_opt/rules.h"
#include "src/io/check/full_check.h"
#include "src/io/text_format.h"
#include "src/report/names.h"

namespace attn_opt {
namespace {

/// The lines of the header at PATH that hold for any spelling of the same model.
std::string shared_header(const std::filesystem::path& path) {
  std::ifstream stream(path);
  std::string text;
  for (std::string line; std::getline(stream, line) && line.starts_with("#");)
    for (const char* key : {"# RUN", "# FEED", "# VERIFY"})
      if (line.starts_with(key)) text += line + "\n";
  return text;
}

std::string text_of(const FusedSite& site) {
  return "(verdict " + site.verdict + ", kv_heads " + std::to_string(site.kv_heads) + ", past " + std::to_string(site.past) +
         ", is_causal " + std::to_string(site.is_causal) + ", scale " + std::to_string(site.scale) + ", softcap " +
         std::to_string(site.softcap) + ")";
}

bool near(double one, double other) { return std::abs(one - other) <= 1e-6 * std::max(1.0, std::abs(one)); }

bool alike(const FusedSite& one, const FusedSite& other) {
  return std::tie(one.verdict, one.kv_heads, one.past, one.is_causal) ==
             std::tie(other.verdict, other.kv_heads, other.past, other.is_causal) &&
         near(one.softcap, other.softcap) && near(one.scale, other.scale);
}

/// A branch that every run takes may have been written in the place of its If.
bool has_branches(const Model& model) {
  return std::ranges::any_of(model.proto.graph().node(), [](const auto& node) { return node.op_type() == "If"; });
}

void compare_sites(const Parent& parent, const Report& report, int sites, Failures& failures) {
  const auto found = fused_sites(report);
  if (found.size() != parent.sites.size() * static_cast<size_t>(sites)) {
    failures.push_back(std::to_string(found.size()) + " sites are fused, not " +
                       std::to_string(parent.sites.size() * static_cast<size_t>(sites)));
    for (const SiteReport& site : report.sites)
      if (site.outcome != SiteReport::Outcome::kFused) failures.push_back(explain(site));
    for (const std::string& reason : report.not_raised) failures.push_back("opset.raise: " + reason);
    return;
  }
  for (size_t i = 0; i < found.size(); ++i) {
    const FusedSite& expected = parent.sites[i / static_cast<size_t>(sites)];
    if (!alike(expected, found[i])) failures.push_back("expected " + text_of(expected) + ", was " + text_of(found[i]));
  }
}

bool has_rule(const Report& report, const OptimizeOptions& options) {
  std::set<std::string_view> names;
  for (const auto& rule : options.rules) names.insert(rule->name());
  return std::ranges::any_of(report.sites, [&names](const SiteReport& site) {
    return site.outcome == SiteReport::Outcome::kFused && names.contains(site.pattern);
  });
}

}  // namespace

std::vector<FusedSite> fused_sites(const Report& report) {
  std::vector<FusedSite> sites;
  for (const SiteReport& site : report.sites) {
    if (site.outcome != SiteReport::Outcome::kFused) continue;
    const std::string verdict = site.verification ? std::string(name_of(site.verification->verdict)) : "none";
    sites.push_back({verdict, site.kv_heads, site.past, site.is_causal, site.softcap, site.scale});
  }
  const auto key = [](const FusedSite& site) {
    return std::make_tuple(site.verdict, site.kv_heads, site.past, site.is_causal, std::lround(site.softcap * 1e4),
                           std::lround(site.scale * 1e4));
  };
  std::ranges::stable_sort(sites, {}, key);
  return sites;
}

Expected<std::optional<Parent>> read_parent(const std::filesystem::path& path) {
  ATTN_OPT_TRY(Case one, read_case(path));
  if (one.expect.fused < 1) return std::nullopt;
  ATTN_OPT_TRY(Model model, load_model(path));
  Model after = model;
  ATTN_OPT_TRY(const Report report, optimize(after, one.options));
  const bool is_of_a_rule = has_rule(report, one.options);
  return Parent{std::move(one), shared_header(path), std::move(model), fused_sites(report), is_of_a_rule};
}

bool is_valid(const Model& model) { return full_check(model.proto).empty(); }

Differences differences(const Parent& parent, const Model& model, int sites, bool compare) {
  Differences found;
  Model after = model;
  const auto report = optimize(after, parent.one.options);
  if (!report) return {{}, {report.error().message()}};
  compare_sites(parent, *report, has_branches(after) ? sites : 1, found.sites);
  if (const std::string reason = full_check(after.proto); !reason.empty())
    found.wrong.push_back("the result is not valid: " + reason);
  if (compare && parent.one.verify) {
    Failures of_spelling;
    check_outputs(parent.one, parent.model, model, of_spelling);
    for (const std::string& failure : of_spelling) found.wrong.push_back("the respelling is not the same model: " + failure);
    check_outputs(parent.one, model, after, found.wrong);
  }
  return found;
}

std::string case_text(const Parent& parent, const Model& model, const std::string& source) {
  std::string text = "# CASE   " + parent.one.name + "_respelled\n# SOURCE " + source +
                     "\n# EXPECT fused=" + std::to_string(parent.one.expect.fused) + "\n" + parent.header;
  const auto printed = print_text(model.proto, parent.one.name);
  return text + (printed ? *printed : "# " + printed.error().message() + "\n");
}

}  // namespace attn_opt
