// What a reviewer of a model should look at: sites that are not fused, rewrites that are not applied, and numbers that are not
// shown to be equal.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace attn_opt {

inline constexpr const char* kVerificationFailed = "verification.failed";
inline constexpr const char* kVerificationUnverified = "verification.unverified";
inline constexpr const char* kVerificationModel = "verification.model";

struct Finding {
  std::string rule;       ///< a heading of docs/misses.md
  bool is_error = false;  ///< numbers differ, or a fusion was lost
  std::string message;
  std::string graph, name;                    ///< of the site; an output's name with graph ""
  std::string module = {}, source_file = {};  ///< of the site, as far as they are known
  int source_line = 0;
  std::string rewrite = {};  ///< the name of the rewrite that it is about; empty: of attention, or of the whole model
};

/// Of REPORT, as to_json() makes it.
std::vector<Finding> findings_of(const nlohmann::json& report);

/// "main/If_3:then_branch/NAME", or the name alone in the main graph.
std::string qualified_name(const nlohmann::json& site);
/// "layers.0.attn (model.py:10)"; empty where nothing but the name is known.
std::string place_of(const nlohmann::json& site);

/// What to call a site in a sentence: its place in the user's program, or its name.
std::string title_of(const nlohmann::json& site);
/// Why a site is not fused, with what was found: "Elu between Q·Kᵀ and the softmax [scores.operator]".
std::string reason_of(const nlohmann::json& site);
/// The command that says more: "attn-opt explain MODEL --node NAME".
std::string explain_command(const std::string& model, const nlohmann::json& site);
/// "rms-norm at /norm/Mul".
std::string title_of_rewrite(const nlohmann::json& rewrite);
/// Did REWRITE, of "rewrites", run and give other numbers?
bool has_other_numbers(const nlohmann::json& rewrite);

/// JSON's text, "" for null.
std::string text_of(const nlohmann::json& value);

}  // namespace attn_opt
