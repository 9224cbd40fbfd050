// The words of EXPECT lines.
#include <algorithm>
#include <array>

#include "src/cli/cases/case_words.h"

namespace attn_opt {
namespace {

Status bad_value(const Setting& setting, const std::string& wanted) {
  return bad_word("'" + setting.value + "' is no value of " + setting.key, "it takes " + wanted);
}

template <class T>
Status add(T value, std::vector<T>& values) {
  values.push_back(std::move(value));
  return {};
}

template <class Count>
Status set_count(const Setting& setting, Count& count) {
  const auto number = parse_integer(setting.value);
  if (!number || *number < 0) return bad_value(setting, "a number");
  count = static_cast<int>(*number);
  return {};
}

Status add_number(const Setting& setting, std::vector<ExpectedNumber>& numbers) {
  const auto number = parse_expected_number(setting.value);
  if (!number) return bad_value(setting, "a number, or NUMBER~TOLERANCE");
  return add(*number, numbers);
}

Status add_word(const Setting& setting, std::vector<std::string>& words, const std::vector<std::string>& allowed) {
  if (std::ranges::find(allowed, setting.value) == allowed.end()) {
    std::string list;
    for (const std::string& word : allowed) list += (list.empty() ? "" : " or ") + word;
    return bad_value(setting, list);
  }
  return add(setting.value, words);
}

Status add_operators(const Setting& setting, std::map<std::string, int>& operators) {
  for (const std::string& word : split_words(setting.value)) {
    const size_t colon = word.rfind(':');
    const auto number = colon == std::string::npos ? std::nullopt : parse_integer(word.substr(colon + 1));
    if (!number || colon == 0) return bad_value(setting, "\"OP:N OP:N\"");
    operators[word.substr(0, colon)] = static_cast<int>(*number);
  }
  return {};
}

constexpr std::array<std::string_view, 3> kStates = {"proven", "refined", "assumed"};

Status add_precondition(const Setting& setting, std::vector<ExpectedPrecondition>& preconditions) {
  const size_t colon = setting.value.find(':');
  ExpectedPrecondition expected{setting.value.substr(0, colon), {}};
  if (colon != std::string::npos) {
    expected.state = setting.value.substr(colon + 1);
    if (std::ranges::find(kStates, expected.state) == kStates.end())
      return bad_value(setting, "ID, ID:proven, ID:refined or ID:assumed");
  }
  return add(std::move(expected), preconditions);
}

Status add_past(const Setting& setting, std::vector<bool>& past) {
  std::vector<std::string> words;
  ATTN_OPT_CHECK(add_word(setting, words, {"yes", "no"}));
  return add(words.front() == "yes", past);
}

Status add_kv_heads(const Setting& setting, std::vector<int64_t>& heads) {
  const auto number = parse_integer(setting.value);
  if (!number) return bad_value(setting, "a number");
  return add(*number, heads);
}

}  // namespace

Status add_expectation(const Setting& setting, Expectations& expect) {
  constexpr std::string_view kAttribute = "attr.";
  const std::string& key = setting.key;
  if (key == "fused") return set_count(setting, expect.fused);
  if (key == "refused") return set_count(setting, expect.refused);
  if (key == "missed") return set_count(setting, expect.missed);
  if (key == "rewritten") return set_count(setting, expect.rewritten);
  if (key == "opset") return set_count(setting, expect.opset);
  if (key == "miss") return add(setting.value, expect.misses);
  if (key == "ops") return add_operators(setting, expect.operators);
  if (key == "form") return add_word(setting, expect.forms, {"3d", "4d"});
  if (key == "verdict") return add_word(setting, expect.verdicts, {"verified", "unverified", "failed"});
  if (key == "scale") return add_number(setting, expect.scales);
  if (key == "softcap") return add_number(setting, expect.softcaps);
  if (key == "precondition") return add_precondition(setting, expect.preconditions);
  if (key == "kv_heads") return add_kv_heads(setting, expect.kv_heads);
  if (key == "past") return add_past(setting, expect.past);
  if (key.starts_with(kAttribute) && key.size() > kAttribute.size()) {
    return add(setting.value, expect.attributes[key.substr(kAttribute.size())]);
  }
  return bad_word("'" + key + "' cannot be expected",
                  "EXPECT knows fused, refused, missed, miss, ops, form, scale, softcap, precondition, verdict, "
                  "attr.NAME, kv_heads, past, opset, rewritten");
}

}  // namespace attn_opt
