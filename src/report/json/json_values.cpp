#include "src/report/json/json_values.h"

#include <cmath>

#include "src/report/report_stream.h"

namespace attn_opt {

using nlohmann::json;

json number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

json text(const std::string& bytes) { return valid_utf8(bytes); }

json text_or_null(const std::string& bytes) { return bytes.empty() ? json() : text(bytes); }

json count_or_null(int64_t count) { return count > 0 ? json(count) : json(); }

json texts(const std::vector<std::string>& list) {
  json array = json::array();
  for (const std::string& element : list) array.push_back(text(element));
  return array;
}

json bytes_or_null(const std::optional<int64_t>& bytes) { return bytes ? json(*bytes) : json(); }

std::string valid_utf8(const std::string& bytes) {
  return json::parse(json(bytes).dump(-1, ' ', false, json::error_handler_t::replace)).get<std::string>();
}

}  // namespace attn_opt
