#include "src/report/kv_cache.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "src/report/drawing/layout.h"
#include "src/report/names.h"
#include "src/report/phrases.h"

namespace attn_opt {
namespace {

using nlohmann::json;

std::string shape_phrase(const std::vector<std::string>& sizes) { return "(" + joined(sizes, ", ") + ")"; }

/// "past_key_values.0.key (batch, 2, past, 8) -> (batch, 2, max_sequence_length, 8)".
std::string change_line(const KvCacheReport::Tensor& tensor) {
  const std::string now = shape_phrase(tensor.after);
  const std::string what =
      tensor.before.empty() ? " " + now + " " + tensor.type + ", new" : " " + shape_phrase(tensor.before) + " -> " + now;
  return wrapped(tensor.name + what, 2);
}

std::string code_of(const std::string& text) { return "`" + text + "`"; }

std::vector<std::string> strings_of(const json& list) { return list.get<std::vector<std::string>>(); }

std::string row(const json& tensor, std::string_view kind) {
  const json& before = tensor.at("before");
  return fmt::format("| {} | {} | {} | {} |\n", kind, code_of(tensor.at("name").get<std::string>()),
                     before.is_null() ? "" : shape_phrase(strings_of(before)), shape_phrase(strings_of(tensor.at("after"))));
}

}  // namespace

std::string calling_phrase(const std::string& length, const std::string& length_input) {
  return fmt::format(
      "begin with buffers of {} rows of zeros and {} = [0]; after each run give the present outputs as the past inputs, and "
      "add "
      "the number of new tokens to {}, which may not pass the buffers' rows",
      length, length_input, length_input);
}

std::string kv_cache_lines(const Report& report) {
  if (!report.kv_cache) return {};
  const KvCacheReport& caches = *report.kv_cache;
  if (caches.outcome != PlaceReport::Outcome::kFused)
    return wrapped(
        "caches are left growing: " + reason_phrase("", caches.miss_id, caches.miss_node, caches.miss_op, caches.found), 0);
  const bool is_verified = caches.verification && caches.verification->verdict == Verdict::kVerified;
  std::string text =
      "\n" + wrapped(fmt::format("the model is called otherwise: the caches of {} node{} are buffers of {} rows ({})",
                                 caches.sites, caches.sites == 1 ? "" : "s", caches.length,
                                 is_verified ? fmt::format("the whole model verified, {} draws", caches.verification->draws)
                                             : "not verified"),
                     0);
  for (const auto& input : caches.inputs) text += change_line(input);
  for (const auto& output : caches.outputs) text += change_line(output);
  return text + wrapped(calling_phrase(caches.length, caches.length_input), 0);
}

std::string kv_cache_markdown(const json& kv_cache) {
  if (kv_cache.is_null()) return {};
  if (!kv_cache.at("miss").is_null()) {
    const json& miss = kv_cache.at("miss");
    return fmt::format("Caches are left growing ({}): {}\n\n", code_of(miss.at("id").get<std::string>()),
                       miss.at("found").get<std::string>());
  }
  std::string text =
      "**The model is called otherwise**: its caches are buffers.\n\n| | name | before | now |\n|---|---|---|---|\n";
  for (const json& input : kv_cache.at("inputs")) text += row(input, "input");
  for (const json& output : kv_cache.at("outputs")) text += row(output, "output");
  return text + "\nHow to call it: " + kv_cache.at("calling").get<std::string>() + ".\n\n";
}

}  // namespace attn_opt
