#include "src/cli/rewrite_counts.h"

#include <fmt/format.h>

#include <algorithm>

namespace attn_opt {
namespace {

using nlohmann::json;

bool is_applied(const json& rewrite) { return rewrite.at("outcome") == "rewritten"; }

std::string times(int64_t count) { return count == 1 ? "once" : fmt::format("{} times", count); }

/// Of the first place in REPORT that rewrite NAME left; empty if none is listed.
std::string reason_left(const std::string& name, const json& report) {
  for (const json& rewrite : report.at("rewrites"))
    if (rewrite.at("pattern") == name && !is_applied(rewrite))
      return ": " + rewrite.at("name").get<std::string>() + ": " + rewrite.at("summary").get<std::string>();
  return "";
}

}  // namespace

json rewrite_counts(const json& report) {
  json counts = json::object();
  for (const json& rewrite : report.value("rewrites", json::array())) {
    if (!is_applied(rewrite)) continue;
    json& count = counts[rewrite.at("pattern").get<std::string>()];
    count = count.is_null() ? 1 : count.get<int64_t>() + 1;
  }
  return counts;
}

bool holds_rewrites(const json& document) {
  const json rewrites = document.value("rewrites", json::array());
  return rewrites.is_array() && std::ranges::all_of(rewrites, [](const json& rewrite) {
           return rewrite.is_object() && rewrite.contains("outcome") && rewrite.value("pattern", json()).is_string();
         });
}

bool are_rewrite_counts(const json& counts) {
  return counts.is_object() && std::ranges::all_of(counts, [](const json& count) { return count.is_number_unsigned(); });
}

std::vector<std::string> fewer_rewrites(const json& known, const json& report) {
  const json now = rewrite_counts(report);
  std::vector<std::string> texts;
  for (const auto& [name, was] : known.items()) {
    const int64_t is = now.value(name, int64_t{0});
    if (is < was.get<int64_t>())
      texts.push_back(fmt::format("rewrite {} is applied {} and was {}{}", name, is == 0 ? "nowhere" : times(is),
                                  times(was.get<int64_t>()), reason_left(name, report)));
  }
  return texts;
}

}  // namespace attn_opt
