#include "src/cli/options/toml.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

namespace attn_opt {
namespace {

bool is_bare(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; }

/// A number or a boolean: what ends at a blank, a comma, a bracket or a comment.
bool is_plain_value(const std::string& word) {
  if (word == "true" || word == "false") return true;
  return !word.empty() && word.find_first_not_of("0123456789+-._eE") == std::string::npos &&
         word.find_first_of("0123456789") != std::string::npos;
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Expected<std::vector<TomlSetting>> read() {
    std::vector<TomlSetting> settings;
    std::set<std::pair<std::string, std::string>> known;
    std::set<std::string> tables;
    std::string table;
    for (skip_lines(); at_ < text_.size(); skip_lines()) {
      if (text_[at_] == '[') {
        ATTN_OPT_TRY(table, read_table());
        if (!tables.insert(table).second) return error("there is a second table '" + table + "'");
      } else {
        ATTN_OPT_TRY(TomlSetting setting, read_setting());
        setting.table = table;
        if (!known.emplace(table, setting.key).second) return error("there is a second '" + setting.key + "'");
        settings.push_back(std::move(setting));
      }
      ATTN_OPT_CHECK(end_line());
    }
    return settings;
  }

 private:
  tl::unexpected<Error> error(const std::string& what) const {
    return fail(ErrorCode::kUsage, path_ + ":" + std::to_string(line_), what);
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t' || (peek() == '\r' && text_.substr(at_).starts_with("\r\n"))) ++at_;
  }

  void skip_comment() {
    if (peek() == '#') at_ = std::min(text_.find('\n', at_), text_.size());
  }

  /// Blanks, comments and ends of lines.
  void skip_lines() {
    for (skip_blanks(), skip_comment(); peek() == '\n'; skip_blanks(), skip_comment()) {
      ++at_;
      ++line_;
    }
  }

  Status end_line() {
    skip_blanks();
    skip_comment();
    if (at_ < text_.size() && peek() != '\n') return error("a line ends here, but for '" + std::string(1, peek()) + "'");
    return {};
  }

  Status take(char c, const char* where) {
    if (peek() != c) return error(std::string("'") + c + "' is wanted " + where);
    ++at_;
    return {};
  }

  Expected<std::string> read_table() {
    ++at_;
    skip_blanks();
    ATTN_OPT_TRY(std::string name, read_key());
    skip_blanks();
    ATTN_OPT_CHECK(take(']', "behind the name of a table"));
    return name;
  }

  Expected<std::string> read_key() {
    if (peek() == '"' || peek() == '\'') return read_string();
    const size_t begin = at_;
    while (at_ < text_.size() && is_bare(text_[at_])) ++at_;
    if (begin == at_) return error("a name is wanted");
    return std::string(text_.substr(begin, at_ - begin));
  }

  Expected<TomlSetting> read_setting() {
    TomlSetting setting;
    setting.line = line_;
    ATTN_OPT_TRY(setting.key, read_key());
    skip_blanks();
    ATTN_OPT_CHECK(take('=', "behind a key"));
    skip_blanks();
    if (peek() != '[') {
      ATTN_OPT_TRY(std::string value, read_value());
      setting.values.push_back(std::move(value));
      return setting;
    }
    ++at_;
    for (skip_lines(); peek() != ']'; skip_lines()) {
      ATTN_OPT_TRY(std::string value, read_value());
      setting.values.push_back(std::move(value));
      skip_lines();
      if (peek() == ']') break;
      ATTN_OPT_CHECK(take(',', "between the values of an array"));
    }
    ++at_;
    return setting;
  }

  Expected<std::string> read_value() {
    if (peek() == '"' || peek() == '\'') return read_string();
    const size_t begin = at_;
    while (at_ < text_.size() && std::string_view(" \t\r\n,]#").find(text_[at_]) == std::string_view::npos) ++at_;
    std::string word(text_.substr(begin, at_ - begin));
    if (is_plain_value(word)) return word;
    return error("'" + word + "' is no value: texts stand in quotes");
  }

  Expected<std::string> read_string() {
    const char quote = text_[at_++];
    std::string value;
    for (; at_ < text_.size() && text_[at_] != '\n' && text_[at_] != quote; ++at_) {
      if (quote == '\'' || text_[at_] != '\\') {
        value += text_[at_];
        continue;
      }
      constexpr std::string_view kEscapes = "\"\\nt", kMeant = "\"\\\n\t";
      const size_t escape = ++at_ < text_.size() ? kEscapes.find(text_[at_]) : std::string_view::npos;
      if (escape == std::string_view::npos) return error("of escapes, \\\", \\\\, \\n and \\t are read");
      value += kMeant[escape];
    }
    ATTN_OPT_CHECK(take(quote, "at the end of a text"));
    return value;
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

Expected<std::vector<TomlSetting>> parse_toml(std::string_view text, const std::string& path) {
  return Reader(text, path).read();
}

}  // namespace attn_opt
