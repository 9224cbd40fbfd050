// JUnit XML as Jenkins' xUnit plugin defines it (junit-10.xsd) and GitLab reads it: a test suite a model, a test a site and a
// test a rewrite.
#include <map>

#include "src/report/findings.h"
#include "src/report/junit_suite.h"
#include "src/report/report_streams.h"

namespace attn_opt {
namespace {

using nlohmann::json;

double seconds_of(const json& value) { return value.is_number() ? value.get<double>() : 0; }

double seconds_at(const json& site) {
  const json& verification = site.at("verification");
  return seconds_of(site.at("match_seconds")) + (verification.is_null() ? 0 : seconds_of(verification.at("seconds")));
}

/// What a test is called: by its module, which stays the same when the model is exported anew, where it is known and no other
/// site's; else by its node. The line goes with the message: it would make another test of each edit.
std::string name_of_test(const json& site, const std::map<std::string, int>& in_module) {
  const std::string module = text_of(site.value("module", json()));
  const auto sites = in_module.find(module);
  return module.empty() || sites == in_module.end() || sites->second > 1 ? qualified_name(site) : module;
}

/// How many sites each module has.
std::map<std::string, int> sites_by_module(const json& sites) {
  std::map<std::string, int> counts;
  for (const json& site : sites) ++counts[text_of(site.value("module", json()))];
  return counts;
}

std::string message_of(const json& site) {
  const std::string place = place_of(site), summary = text_of(site.at("summary"));
  return place.empty() ? summary : place + ": " + summary;
}

void add_site(JunitSuite& suite, const std::string& name, const json& site) {
  const json &miss = site.at("miss"), &verification = site.at("verification");
  const std::string summary = message_of(site);
  const double seconds = seconds_at(site);
  if (!miss.is_null()) {
    const std::string id = text_of(miss.at("id"));
    if (site.value("lost", json()) == true)
      suite.failure(name, seconds, id, "no longer fused: " + summary);
    else
      suite.skip(name, seconds, id, id + ": " + summary);
  } else if (!verification.is_null() && text_of(verification.at("verdict")) == "failed") {
    suite.failure(name, seconds, kVerificationFailed, summary);
  } else if (site.at("outcome") != "fused") {
    suite.skip(name, seconds, text_of(site.at("outcome")), summary);
  } else {
    suite.pass(name, seconds, summary);
  }
}

void add_rewrite(JunitSuite& suite, const json& rewrite) {
  const json& miss = rewrite.at("miss");
  const std::string name = title_of_rewrite(rewrite), summary = text_of(rewrite.at("summary"));
  const double seconds = seconds_at(rewrite);
  if (miss.is_null())
    suite.pass(name, seconds, summary);
  else if (has_other_numbers(rewrite))
    suite.failure(name, seconds, text_of(miss.at("id")), summary);
  else
    suite.skip(name, seconds, text_of(miss.at("id")), summary);
}

/// What ended the run otherwise than with status 0, as a test of its own.
void add_status(JunitSuite& suite, const ModelOutcome& model) {
  constexpr int kRequirement = 1, kMismatch = 4;
  const std::string status = "status " + std::to_string(model.status);
  if (model.status == kRequirement || model.status == kMismatch)
    suite.failure("attn-opt", 0, status, model.message);
  else if (model.status != 0)
    suite.error("attn-opt", 0, status, model.message);
}

class Junit : public ReportStream {
 public:
  std::string begin() override { return junit_begin(); }
  std::string add(const ModelOutcome& model) override {
    JunitSuite suite(model.input);
    if (!model.report.is_null()) {
      const json& sites = model.report.at("sites");
      const auto in_module = sites_by_module(sites);
      for (const json& site : sites) add_site(suite, name_of_test(site, in_module), site);
      for (const json& rewrite : model.report.value("rewrites", json::array())) add_rewrite(suite, rewrite);
    }
    add_status(suite, model);
    return suite.xml(model.seconds);
  }
  std::string end() override { return junit_end(); }
};

}  // namespace

std::unique_ptr<ReportStream> junit_stream() { return std::make_unique<Junit>(); }

}  // namespace attn_opt
