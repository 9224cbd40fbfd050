// How often each rewrite was applied to a model, as baselines keep it. Places have no names that stay: exporters count nodes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace attn_opt {

/// {"rotary": 4, ...} of a REPORT, as to_json() makes it; those that were not applied are not in it.
nlohmann::json rewrite_counts(const nlohmann::json& report);
/// Has DOCUMENT what rewrite_counts() reads of a report, or nothing of it?
bool holds_rewrites(const nlohmann::json& document);
/// Is COUNTS what rewrite_counts() gives?
bool are_rewrite_counts(const nlohmann::json& counts);
/// For each rewrite that REPORT applies less often than KNOWN says: "rewrite rotary is applied 3 times and was 4 times: ...",
/// with the first place that was left, if one is listed.
std::vector<std::string> fewer_rewrites(const nlohmann::json& known, const nlohmann::json& report);

}  // namespace attn_opt
