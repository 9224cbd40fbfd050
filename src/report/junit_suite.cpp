#include "src/report/junit_suite.h"

#include <fmt/format.h>

namespace attn_opt {
namespace {

/// TEXT, which is UTF-8, in an attribute or between tags. Control characters, U+FFFE and U+FFFF have no form in XML 1.0.
std::string escaped(std::string text) {
  for (const char* none : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"})
    for (size_t at = text.find(none); at != std::string::npos; at = text.find(none)) text.replace(at, 3, "?");
  std::string xml;
  for (const char c : text) {
    switch (c) {
      case '&': xml += "&amp;"; break;
      case '<': xml += "&lt;"; break;
      case '>': xml += "&gt;"; break;
      case '"': xml += "&quot;"; break;
      case '\t': case '\n': xml += ' '; break;
      default: xml += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
  }
  return xml;
}

/// SECONDS as the schema takes them: at most three digits behind the point.
std::string seconds_text(double seconds) { return fmt::format("{:.3f}", seconds < 0 ? 0 : seconds); }

std::string element(const std::string& tag, const std::string& type, const std::string& message) {
  return fmt::format("<{} type=\"{}\" message=\"{}\"/>", tag, escaped(type), escaped(message));
}

}  // namespace

std::string junit_begin() { return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"attn-opt\">\n"; }
std::string junit_end() { return "</testsuites>\n"; }

void JunitSuite::pass(const std::string& test, double seconds, const std::string& output) {
  add(test, seconds, output.empty() ? "" : "<system-out>" + escaped(output) + "</system-out>");
}

void JunitSuite::skip(const std::string& test, double seconds, const std::string& type, const std::string& message) {
  add(test, seconds, element("skipped", type, message));
  ++skipped_;
}

void JunitSuite::failure(const std::string& test, double seconds, const std::string& type, const std::string& message) {
  add(test, seconds, element("failure", type, message));
  ++failures_;
}

void JunitSuite::error(const std::string& test, double seconds, const std::string& type, const std::string& message) {
  add(test, seconds, element("error", type, message));
  ++errors_;
}

void JunitSuite::add(const std::string& test, double seconds, const std::string& inside) {
  tests_ += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{}\">{}</testcase>\n", escaped(name_),
                        escaped(test), seconds_text(seconds), inside);
  ++count_;
}

std::string JunitSuite::xml(double seconds) const {
  return fmt::format(
      "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\">\n{}"
      "  </testsuite>\n",
      escaped(name_), count_, failures_, errors_, skipped_, seconds_text(seconds), tests_);
}

}  // namespace attn_opt
