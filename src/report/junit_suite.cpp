#include "src/report/junit_suite.h"

#include <fmt/format.h>

#include "src/report/xml.h"

namespace attn_opt {
namespace {

/// SECONDS as the schema takes them: at most three digits behind the point.
std::string seconds_text(double seconds) { return fmt::format("{:.3f}", seconds < 0 ? 0 : seconds); }

std::string element(const std::string& tag, const std::string& type, const std::string& message) {
  return fmt::format("<{} type=\"{}\" message=\"{}\"/>", tag, xml_escaped(type), xml_escaped(message));
}

}  // namespace

std::string junit_begin() { return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"attn-opt\">\n"; }
std::string junit_end() { return "</testsuites>\n"; }

void JunitSuite::pass(const std::string& test, double seconds, const std::string& output) {
  add(test, seconds, output.empty() ? "" : "<system-out>" + xml_escaped(output) + "</system-out>");
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
  tests_ += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{}\">{}</testcase>\n", xml_escaped(name_),
                        xml_escaped(test), seconds_text(seconds), inside);
  ++count_;
}

std::string JunitSuite::xml(double seconds) const {
  return fmt::format(
      "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\">\n{}"
      "  </testsuite>\n",
      xml_escaped(name_), count_, failures_, errors_, skipped_, seconds_text(seconds), tests_);
}

}  // namespace attn_opt
