// Words of a case's header.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attn_opt/status.h"
#include "src/cli/cases/case_file.h"

namespace attn_opt {

/// LINE cut at blanks; blanks between double quotes stay, the quotes go.
std::vector<std::string> split_words(std::string_view line);

struct Setting {
  std::string key, value;
};
/// WORD as KEY=VALUE. Error: kUsage.
Expected<Setting> parse_setting(const std::string& word);

std::optional<int64_t> parse_integer(std::string_view text);
std::optional<double> parse_real(std::string_view text);
/// VALUE or VALUE~TOLERANCE.
std::optional<ExpectedNumber> parse_expected_number(std::string_view text);

inline tl::unexpected<Error> bad_word(const std::string& what, const std::string& remedy = {}) {
  return fail(ErrorCode::kUsage, "", what, remedy);
}

/// Enters one KEY=VALUE of an EXPECT line. Error: kUsage.
Status add_expectation(const Setting& setting, Expectations& expect);

}  // namespace attn_opt
