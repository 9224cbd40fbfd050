// JUnit XML as Jenkins' xUnit plugin defines it (junit-10.xsd) and GitLab reads it: a test suite a model, a test a site.
#include <fmt/format.h>

#include "src/report/findings.h"
#include "src/report/report_streams.h"

namespace attn_opt {
namespace {

using nlohmann::json;

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

double seconds_of(const json& value) { return value.is_number() ? value.get<double>() : 0; }

struct Suite {
  std::string tests;
  int count = 0, failures = 0, errors = 0, skipped = 0;

  void add(const std::string& model, const std::string& name, double seconds, const std::string& inside) {
    tests += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{}\">{}</testcase>\n", escaped(model),
                         escaped(name), seconds_text(seconds), inside);
    ++count;
  }
};

std::string element(const std::string& tag, const std::string& type, const std::string& message) {
  return fmt::format("<{} type=\"{}\" message=\"{}\"/>", tag, escaped(type), escaped(message));
}

double seconds_at(const json& site) {
  const json& verification = site.at("verification");
  return seconds_of(site.at("match_seconds")) + (verification.is_null() ? 0 : seconds_of(verification.at("seconds")));
}

void add_site(Suite& suite, const std::string& model, const json& site) {
  const json &miss = site.at("miss"), &verification = site.at("verification");
  const std::string summary = text_of(site.at("summary"));
  std::string inside = "<system-out>" + escaped(summary) + "</system-out>";
  if (!miss.is_null()) {
    inside = element("skipped", text_of(miss.at("id")), text_of(miss.at("id")) + ": " + summary);
    ++suite.skipped;
  } else if (!verification.is_null() && text_of(verification.at("verdict")) == "failed") {
    inside = element("failure", kVerificationFailed, summary);
    ++suite.failures;
  } else if (site.at("outcome") != "fused") {
    inside = element("skipped", text_of(site.at("outcome")), summary);
    ++suite.skipped;
  }
  suite.add(model, qualified_name(site), seconds_at(site), inside);
}

/// What ended the run otherwise than with status 0, as a test of its own.
void add_status(Suite& suite, const ModelOutcome& model) {
  constexpr int kRequirement = 1, kMismatch = 4;
  if (model.status == 0) return;
  const bool is_failure = model.status == kRequirement || model.status == kMismatch;
  ++(is_failure ? suite.failures : suite.errors);
  suite.add(model.input, "attn-opt", 0,
            element(is_failure ? "failure" : "error", fmt::format("status {}", model.status), model.message));
}

class Junit : public ReportStream {
 public:
  std::string begin() override {
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"attn-opt\">\n";
  }
  std::string add(const ModelOutcome& model) override {
    Suite suite;
    if (!model.report.is_null())
      for (const json& site : model.report.at("sites")) add_site(suite, model.input, site);
    add_status(suite, model);
    return fmt::format(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\">\n{}"
        "  </testsuite>\n",
        escaped(model.input), suite.count, suite.failures, suite.errors, suite.skipped, seconds_text(model.seconds),
        suite.tests);
  }
  std::string end() override { return "</testsuites>\n"; }
};

}  // namespace

std::unique_ptr<ReportStream> junit_stream() { return std::make_unique<Junit>(); }

}  // namespace attn_opt
