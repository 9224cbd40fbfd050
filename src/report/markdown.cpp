// GitHub-flavoured Markdown, to be posted to a pull request: short, whatever the number of sites.
#include <fmt/format.h>

#include <algorithm>

#include "src/report/batch_totals.h"
#include "src/report/drawing/dot.h"
#include "src/report/drawing/drawings.h"
#include "src/report/drawing/layout.h"
#include "src/report/findings.h"
#include "src/report/kv_cache.h"
#include "src/report/miss_manual.h"
#include "src/report/report_streams.h"
#include "src/report/xml.h"

namespace attn_opt {
namespace {

using nlohmann::json;
constexpr size_t kWidestCell = 160;
constexpr size_t kWidestMessage = 1000;  ///< an error says what was found and what to run

/// TEXT in a cell of a table.
std::string cell(const std::string& text, size_t width = kWidestCell) {
  std::string escaped;
  for (const char c : elided(text, width)) {
    if (c == '|' || c == '<' || c == '\\' || c == '*' || c == '_') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string code(const std::string& text) {
  std::string plain = elided(text, kWidestCell);
  std::ranges::replace(plain, '`', '\'');
  std::ranges::replace(plain, '|', '/');
  return "`" + plain + "`";
}

/// Sites that are told in one row: they differ in nothing but where they are.
struct Row {
  std::string key, outcome, summary, first;
  int sites = 0;
};

/// Why SITE is missed; the id stands beside it.
std::string reason_without_id(const json& site) {
  std::string reason = reason_of(site);
  const std::string id = " [" + text_of(site.at("miss").at("id")) + "]";
  if (reason.ends_with(id)) reason.resize(reason.size() - id.size());
  return reason;
}

Row row_of(const json& site) {
  const json &miss = site.at("miss"), &verification = site.at("verification");
  Row row;
  row.outcome = text_of(site.at("outcome"));
  if (!miss.is_null()) row.outcome += " " + code(text_of(miss.at("id")));
  row.key = row.outcome;
  for (const char* same : {"form", "q_heads", "kv_heads", "past", "is_causal", "written"})
    if (site.contains(same)) row.key += " " + site.at(same).dump();
  if (!verification.is_null()) row.key += " " + text_of(verification.at("verdict"));
  row.summary = cell(miss.is_null() ? text_of(site.at("summary")) : reason_without_id(site));
  const std::string place = place_of(site);
  row.first = (place.empty() ? "" : code(place) + " ") + code(qualified_name(site));
  return row;
}

/// SITES: those of attention, or the rewrites.
std::string site_table(const json& sites, std::string_view heading) {
  std::vector<Row> rows;
  for (const json& site : sites) {
    Row row = row_of(site);
    auto same = std::ranges::find(rows, row.key, &Row::key);
    if (same == rows.end()) same = rows.insert(rows.end(), std::move(row));
    ++same->sites;
  }
  if (rows.empty()) return {};
  std::string text = fmt::format("| {} | outcome | example site | result |\n|--:|---|---|---|\n", heading);
  for (const Row& row : rows) text += fmt::format("| {} | {} | {} | {} |\n", row.sites, row.outcome, row.first, row.summary);
  return text + "\n";
}

constexpr size_t kMostPictures = 4;  // in one report: a comment on GitHub takes 64 kB

/// Folded: GitHub makes a picture of it.
std::string picture(const std::string& caption, const json& graph) {
  return fmt::format("<details><summary>{}</summary>\n\n```mermaid\n{}```\n\n</details>\n", xml_escaped(caption),
                     mermaid(diagram_of(graph)));
}

/// The first site of each of the first groups.
std::string pictures(const json& report) {
  std::string text;
  for_each_drawing(report, [&text](const GroupDrawing& drawing) {
    if (drawing.group < kMostPictures) text += picture(drawing.caption(), *drawing.graph);
  });
  return text;
}

/// What is missed in several models, each group once; that of models with an error comes first.
class MissedPictures {
 public:
  void add(const ModelOutcome& model) {
    if (model.report.is_null()) return;
    auto& list = model.status == 0 ? others_ : first_;
    for_each_drawing(model.report, [&](const GroupDrawing& drawing) {
      if (drawing.has_both_sides || list.size() >= kMostPictures) return;
      list.push_back(picture(model.input + ": " + drawing.caption(), *drawing.graph));
    });
  }

  std::string text() const {
    std::vector<std::string> all = first_;
    all.insert(all.end(), others_.begin(), others_.end());
    all.resize(std::min(all.size(), kMostPictures));
    std::string joined;
    for (const std::string& one : all) joined += one;
    return joined;
  }

 private:
  std::vector<std::string> first_, others_;
};

std::string operator_table(const json& operators) {
  if (operators.empty()) return {};
  std::string text = "<details><summary>Operators</summary>\n\n| | before | after |\n|---|--:|--:|\n";
  for (const json& one : operators)
    text +=
        fmt::format("| {} | {} | {} |\n", cell(text_of(one.at("op"))), one.at("before").get<int>(), one.at("after").get<int>());
  return text + "\n</details>\n";
}

std::string assurance_line(const BatchTotals& totals) {
  const std::string phrase = assurance_phrase(totals);
  return phrase.empty() ? "" : cell(phrase, kWidestMessage) + ".\n\n";
}

std::string reasons(const BatchTotals& totals) {
  if (totals.misses.empty()) return {};
  std::string text = "Why not:\n\n";
  for (const auto& [id, sites] : totals.misses) {
    const std::string meaning = manual_of(id).meaning;
    text += fmt::format("- {} ({} site{}){}\n", code(id), sites, sites == 1 ? "" : "s", meaning.empty() ? "" : ": " + meaning);
  }
  return text + "\n`attn-opt explain --id ID` says what to do.\n\n";
}

std::string status_line(const ModelOutcome& model) {
  return model.status == 0 ? "" : fmt::format("**Status {}**: {}\n\n", model.status, cell(model.message, kWidestMessage));
}

std::string before_after(const json& report, const char* key) {
  const json& counts = report.at(key);
  const int before = counts.at("before").get<int>(), after = counts.at("after").get<int>();
  return before == after ? fmt::format("{} {}", key, before) : fmt::format("{} {} → {}", key, before, after);
}

class ModelMarkdown : public ReportStream {
 public:
  std::string begin() override { return {}; }
  std::string add(const ModelOutcome& model) override {
    std::string text = "### attn-opt: " + code(model.input) + "\n\n" + status_line(model);
    if (model.report.is_null()) return text;
    BatchTotals totals;
    totals.add(model);
    text += fmt::format("**{}**, {}, {}.\n\n", results_phrase(totals, !model.output.empty()),
                        before_after(model.report, "opset"), before_after(model.report, "nodes"));
    text += assurance_line(totals);
    text += kv_cache_markdown(model.report.value("kv_cache", json()));
    text += site_table(model.report.at("sites"), "sites") + reasons(totals);
    text += site_table(model.report.value("rewrites", json::array()), "rewrites");
    for (const Finding& finding : findings_of(model.report))
      if (finding.graph.empty()) text += fmt::format("- {}: {}\n", code(finding.rule), cell(finding.message));
    return text + pictures(model.report) + operator_table(model.report.at("operators"));
  }
  std::string end() override { return {}; }
};

class BatchMarkdown : public ReportStream {
 public:
  std::string begin() override {
    return "### attn-opt\n\n| model | status | sites | fused | refused | missed | |\n|---|--:|--:|--:|--:|--:|---|\n";
  }
  std::string add(const ModelOutcome& model) override {
    totals_.add(model);
    pictures_.add(model);
    std::string counts = " | | |";
    if (!model.report.is_null()) {
      const json& summary = model.report.at("summary");
      counts = fmt::format("{} | {} | {} | {}", summary.at("sites").get<int>(), summary.at("fused").get<int>(),
                           summary.at("refused").get<int>(), summary.at("missed").get<int>());
    }
    return fmt::format("| {} | {} | {} | {} |\n", code(model.input), model.status, counts, cell(model.message, kWidestMessage));
  }
  std::string end() override {
    return fmt::format("\n{}; {}.\n\n", status_phrase(totals_), results_phrase(totals_, true)) + assurance_line(totals_) +
           reasons(totals_) + pictures_.text();
  }

 private:
  BatchTotals totals_;
  MissedPictures pictures_;
};

}  // namespace

std::unique_ptr<ReportStream> markdown_stream(ReportScope scope) {
  if (scope == ReportScope::kOne) return std::make_unique<ModelMarkdown>();
  return std::make_unique<BatchMarkdown>();
}

}  // namespace attn_opt
