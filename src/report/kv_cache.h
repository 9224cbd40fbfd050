// What reports say of caches that became buffers, or did not.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "attn_opt/report.h"

namespace attn_opt {

/// For people: which inputs and outputs are others, and how the model is called; or why nothing changed. Empty where static
/// caches were not asked for.
std::string kv_cache_lines(const Report& report);
/// The same in Markdown, from the report's "kv_cache".
std::string kv_cache_markdown(const nlohmann::json& kv_cache);
/// How a model with buffers is called, a sentence each.
std::string calling_phrase(const std::string& length, const std::string& length_input);

}  // namespace attn_opt
