#include "src/cli/cases/case_words.h"

#include <charconv>
#include <cmath>

namespace attn_opt {
namespace {

template <class Number>
std::optional<Number> parse_all(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

bool ExpectedNumber::admits(double other) const { return std::abs(other - value) <= tolerance; }

std::vector<std::string> split_words(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == ' ' || c == '\t' || c == '\r')) {
      if (!word.empty()) words.push_back(std::move(word));
      word.clear();
    } else {
      word += c;
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

Expected<Setting> parse_setting(const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) return bad_word("'" + word + "' is not KEY=VALUE");
  return Setting{word.substr(0, equals), word.substr(equals + 1)};
}

std::optional<int64_t> parse_integer(std::string_view text) { return parse_all<int64_t>(text); }
std::optional<double> parse_real(std::string_view text) { return parse_all<double>(text); }

std::optional<ExpectedNumber> parse_expected_number(std::string_view text) {
  constexpr double kDefaultTolerance = 1e-6;
  const size_t tilde = text.find('~');
  const auto value = parse_real(text.substr(0, tilde));
  if (!value) return std::nullopt;
  if (tilde == std::string_view::npos) return ExpectedNumber{*value, kDefaultTolerance};
  const auto tolerance = parse_real(text.substr(tilde + 1));
  if (!tolerance) return std::nullopt;
  return ExpectedNumber{*value, *tolerance};
}

}  // namespace attn_opt
