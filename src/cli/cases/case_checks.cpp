#include "src/cli/cases/case_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attn_opt/internal/model_walk.h"
#include "src/cli/cases/case_words.h"
#include "src/optimizer/operator_counts.h"
#include "src/optimizer/sites.h"
#include "src/report/drawing/layout.h"
#include "src/report/names.h"

namespace attn_opt {
namespace {

using Outcome = SiteReport::Outcome;

std::string text_of(const ExpectedNumber& number) { return fmt::format("{}~{}", number.value, number.tolerance); }
std::string text_of(const std::string& word) { return word; }
std::string text_of(double number) { return fmt::format("{}", number); }
std::string text_of(int64_t number) { return fmt::format("{}", number); }
std::string text_of(bool yes) { return yes ? "yes" : "no"; }

bool admits(const ExpectedNumber& expected, double actual) { return expected.admits(actual); }
template <class T>
bool admits(const T& expected, const T& actual) {
  return expected == actual;
}

template <class T>
std::string texts_of(const std::vector<T>& values) {
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const auto& value : values) texts.push_back(text_of(value));
  return texts.empty() ? "none" : joined(texts, ", ");
}

/// EXPECTED names all the values in ACTUAL; nothing expected asks for nothing.
template <class E, class A>
void check_values(const std::string& what, const std::vector<E>& expected, const std::vector<A>& actual, Failures& failures) {
  if (expected.empty()) return;
  const bool each_has_one = std::ranges::all_of(actual, [&](const A& value) {
    return std::ranges::any_of(expected, [&](const E& wish) { return admits(wish, value); });
  });
  const bool each_is_had = std::ranges::all_of(expected, [&](const E& wish) {
    return std::ranges::any_of(actual, [&](const A& value) { return admits(wish, value); });
  });
  if (!each_has_one || !each_is_had) {
    failures.push_back(what + ": expected " + texts_of(expected) + ", was " + texts_of(actual));
  }
}

/// What MEMBER_OF gives for every site that was recognised.
template <class MemberOf>
auto recognised(const Report& report, MemberOf member_of) {
  std::vector<std::decay_t<decltype(member_of(report.sites.front()))>> values;
  for (const SiteReport& site : report.sites) {
    if (site.outcome != Outcome::kMissed) values.push_back(member_of(site));
  }
  return values;
}

/// Of a rewrite, or of attention.
template <class Site>
std::string verdict_of(const Site& site) {
  return site.verification ? std::string(name_of(site.verification->verdict)) : "none";
}

void check_sites(const Expectations& expect, const Report& report, Failures& failures) {
  check_values("form", expect.forms, recognised(report, [](const auto& site) { return site.form; }), failures);
  auto verdicts = recognised(report, [](const auto& site) { return verdict_of(site); });
  for (const RewriteReport& rewrite : report.rewrites)
    if (rewrite.outcome != Outcome::kMissed) verdicts.push_back(verdict_of(rewrite));
  check_values("verdict", expect.verdicts, verdicts, failures);
  check_values("scale", expect.scales, recognised(report, [](const auto& site) { return site.scale; }), failures);
  check_values("softcap", expect.softcaps, recognised(report, [](const auto& site) { return site.softcap; }), failures);
  check_values("kv_heads", expect.kv_heads, recognised(report, [](const auto& site) { return site.kv_heads; }), failures);
  check_values("past", expect.past, recognised(report, [](const auto& site) { return site.past; }), failures);
}

bool holds(const std::vector<std::string>& ids, std::string_view id) { return std::ranges::find(ids, id) != ids.end(); }

void check_misses(const Expectations& expect, const Report& report, Failures& failures) {
  std::vector<std::string> found;
  for (const SiteReport& site : report.sites) {
    if (site.outcome == Outcome::kFused) continue;
    found.push_back(site.miss_id);
    for (const OtherMiss& other : site.other_misses) found.push_back(other.id);
  }
  for (const RewriteReport& rewrite : report.rewrites)
    if (!rewrite.miss_id.empty()) found.push_back(rewrite.miss_id);
  if (!report.not_raised.empty()) found.emplace_back("opset.raise");
  if (report.kv_cache && !report.kv_cache->miss_id.empty()) found.push_back(report.kv_cache->miss_id);
  // A fault of a pattern is never what a case is about, and must not pass as a site that is left.
  if (holds(found, kDefect) && !holds(expect.misses, kDefect)) failures.push_back("miss: " + std::string(kDefect));
  for (const std::string& id : expect.misses) {
    if (!holds(found, id)) {
      failures.push_back("miss: expected " + id + ", was " + texts_of(found));
    }
  }
}

void check_preconditions(const Expectations& expect, const Report& report, Failures& failures) {
  std::vector<Precondition> listed;
  std::vector<std::string> texts;
  for (const SiteReport& site : report.sites) {
    for (const Precondition& one : site.preconditions) {
      listed.push_back(one);
      texts.push_back(one.id + ":" + std::string(state_of(one)));
    }
  }
  for (const ExpectedPrecondition& wish : expect.preconditions) {
    const bool met = std::ranges::any_of(listed, [&wish](const Precondition& one) {
      return one.id == wish.id && (wish.state.empty() || wish.state == state_of(one));
    });
    const std::string state = wish.state.empty() ? "" : ":" + wish.state;
    if (!met) failures.push_back("precondition: expected " + wish.id + state + ", was " + texts_of(texts));
  }
}

std::string attribute_text(const onnx::NodeProto& node, const std::string& name) {
  using A = onnx::AttributeProto;
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() != name) continue;
    switch (attribute.type()) {
      case A::INT: return fmt::format("{}", attribute.i());
      case A::FLOAT: return fmt::format("{}", attribute.f());
      case A::STRING: return attribute.s();
      case A::INTS: return fmt::format("[{}]", fmt::join(attribute.ints(), ","));
      default: return A::AttributeType_Name(attribute.type());
    }
  }
  return "absent";
}

/// The same text, or numbers that are the same within the expected tolerance.
bool attribute_admits(const std::string& expected, const std::string& actual) {
  if (expected == actual) return true;
  const auto wish = parse_expected_number(expected);
  const auto number = parse_real(actual);
  return wish && number && wish->admits(*number);
}

void check_operators(const Expectations& expect, const onnx::ModelProto& result, Failures& failures) {
  OperatorCounts found = count_operators(result);
  for (const auto& [op, count] : expect.operators) {
    expect_equal("number of " + op, text_of(int64_t{count}), text_of(int64_t{found[op]}), failures);
  }
}

void check_attributes(const Expectations& expect, const onnx::ModelProto& result, Failures& failures) {
  for (const auto& wanted : expect.attributes) {
    const auto& name = wanted.first;
    const auto& wishes = wanted.second;
    std::vector<std::string> found;
    for_each_node(result, [&](const onnx::NodeProto& node) {
      if (node.op_type() == "Attention" && node.domain().empty()) found.push_back(attribute_text(node, name));
    });
    const bool met =
        std::ranges::all_of(wishes,
                            [&](const std::string& wish) {
                              return std::ranges::any_of(found,
                                                         [&](const std::string& text) { return attribute_admits(wish, text); });
                            }) &&
        std::ranges::all_of(found, [&](const std::string& text) {
          return std::ranges::any_of(wishes, [&](const std::string& wish) { return attribute_admits(wish, text); });
        });
    if (!met) failures.push_back("attr." + name + ": expected " + texts_of(wishes) + ", was " + texts_of(found));
  }
}

}  // namespace

void check_expectations(const Expectations& expect, const Report& report, const onnx::ModelProto& result, Failures& failures) {
  const size_t before = failures.size();
  const auto check_count = [&failures](const std::string& what, std::optional<int> expected, int was) {
    if (expected) expect_equal(what, std::to_string(*expected), std::to_string(was), failures);
  };
  check_count("fused", expect.fused, report.fused());
  check_count("refused", expect.refused, report.refused());
  check_count("missed", expect.missed, report.missed());
  check_count("rewritten", expect.rewritten, report.rewritten());
  check_count("opset", expect.opset, opset_version(result));
  check_misses(expect, report, failures);
  check_sites(expect, report, failures);
  check_preconditions(expect, report, failures);
  check_operators(expect, result, failures);
  check_attributes(expect, result, failures);
  if (failures.size() == before) return;
  for (const SiteReport& site : report.sites) {
    if (site.outcome != Outcome::kFused) failures.push_back(explain(site));
  }
  for (const RewriteReport& rewrite : report.rewrites)
    if (rewrite.outcome != Outcome::kFused) failures.push_back(explain(rewrite));
  for (const std::string& reason : report.not_raised) failures.push_back("opset.raise: " + reason);
}

}  // namespace attn_opt
