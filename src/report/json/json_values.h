// Values of the JSON report.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace attn_opt {

/// JSON has no word for what is not finite; dump() would write null for all of it.
nlohmann::json number(double value);
/// Names in a model are bytes, but dump() throws on what is not UTF-8.
nlohmann::json text(const std::string& bytes);
nlohmann::json texts(const std::vector<std::string>& list);
/// Null for "".
nlohmann::json text_or_null(const std::string& bytes);
/// Null for what is not above 0.
nlohmann::json count_or_null(int64_t count);
nlohmann::json bytes_or_null(const std::optional<int64_t>& bytes);

}  // namespace attn_opt
