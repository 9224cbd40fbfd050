#include "src/cli/cases/case_runner.h"

#include <onnx/checker.h>

#include <chrono>
#include <exception>
#include <fstream>
#include <sstream>

#include "attn_opt/model_io.h"
#include "src/cli/cases/case_checks.h"
#include "src/io/check/full_check.h"
#include "src/io/text_format.h"
#include "src/verify/seconds.h"

namespace attn_opt {
namespace {

void check_raise(const OptimizeOptions& options, const onnx::ModelProto& before, const onnx::ModelProto& after,
                 const Report& report, Failures& failures) {
  const int was = opset_version(before);
  const bool raises = (report.fused() > 0 && options.emit.stage == Stage::kAttention) || report.rewritten() > 0;
  const int wanted = raises ? std::max(was, options.opset) : was;
  expect_equal("opset of the result", std::to_string(wanted), std::to_string(opset_version(after)), failures);
  expect_equal("opset in the report", std::to_string(wanted), std::to_string(report.opset_after), failures);
}

void check_untouched(const onnx::ModelProto& before, const onnx::ModelProto& after, const Report& report, Failures& failures) {
  const bool same = before.SerializeAsString() == after.SerializeAsString();
  const bool has_buffers = report.kv_cache && report.kv_cache->outcome == PlaceReport::Outcome::kFused;
  if (report.fused() + report.rewritten() == 0 && !has_buffers && !same)
    failures.emplace_back("nothing was fused, but the model was changed");
  if (report.changed == same) {
    failures.push_back(std::string("the report says that the model ") + (same ? "was" : "was not") + " changed");
  }
}

void check_second_run(const OptimizeOptions& options, const Model& after, Failures& failures) {
  Model again = after;
  const Expected<Report> report = optimize(again, options);
  if (!report) return failures.push_back("second run: " + report.error().message());
  expect_equal("sites fused in a second run", "0", std::to_string(report->fused()), failures);
  if (again.proto.SerializeAsString() != after.proto.SerializeAsString()) {
    failures.emplace_back("a second run changed the model");
  }
}

/// The first line in which two texts differ.
std::string first_difference(const std::string& expected, const std::string& was) {
  std::istringstream expected_lines(expected), was_lines(was);
  std::string expected_line, was_line;
  for (int number = 1;; ++number) {
    const bool more = static_cast<bool>(std::getline(expected_lines, expected_line));
    if (!more) expected_line = "the end";
    const bool more_was = static_cast<bool>(std::getline(was_lines, was_line));
    if (!more_was) was_line = "the end";
    if (expected_line == was_line && more && more_was) continue;
    return "line " + std::to_string(number) + "\n  expected " + expected_line + "\n  was      " + was_line;
  }
}

void check_golden(const Case& one, const Model& after, bool update, CaseResult& result) {
  const std::string file = one.golden.filename().string();
  const Expected<std::string> text = print_text(after.proto, file);
  if (!text) return result.failures.push_back("AFTER: " + text.error().message());
  std::ifstream stream(one.golden);
  const std::string golden{std::istreambuf_iterator<char>(stream), {}};
  if (golden == *text) return;
  if (!update) {
    return result.failures.push_back("AFTER: the result is not that of " + file + ": " + first_difference(golden, *text));
  }
  std::ofstream out(one.golden);
  out << *text;
  if (!out.flush()) return result.failures.push_back("AFTER: " + file + " cannot be written");
  result.golden_written = true;
}

void check_result(const Case& one, const Model& before, const Model& after, const Report& report, Failures& failures) {
  check_expectations(one.expect, report, after.proto, failures);
  if (const std::string invalid = full_check(after.proto); !invalid.empty()) {
    failures.push_back("the result is not valid: " + invalid);
  }
  check_raise(one.options, before.proto, after.proto, report, failures);
  check_untouched(before.proto, after.proto, report, failures);
  const bool everything_was_tried = one.options.stop_after < 0;
  if (everything_was_tried) check_second_run(one.options, after, failures);
  if (one.verify && report.changed) check_outputs(one, before, after, failures);
}

Status run(const Case& one, bool update_golden, CaseResult& result) {
  ATTN_OPT_TRY(const Model before, load_model(one.path));
  if (const std::string invalid = full_check(before.proto); !invalid.empty()) {
    return fail(ErrorCode::kInvalidInput, one.path.string(), "the case's own model is not valid: " + invalid);
  }
  Model after = before;
  OptimizeOptions options = one.options;
  options.on_commit = [&](const ModelGraph& view, const std::string& site) {
    if (const Status whole = view.check(); !whole)
      result.failures.push_back("after " + site + " was fused: " + whole.error().message());
  };
  ATTN_OPT_TRY(const Report report, optimize(after, options));
  check_result(one, before, after, report, result.failures);
  if (!one.golden.empty()) check_golden(one, after, update_golden, result);
  return {};
}

std::string indented(const std::string& text) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) result += "  " + line + "\n";
  return result;
}

}  // namespace

CaseResult run_case(const std::filesystem::path& path, const CaseSettings& settings) {
  const auto begin = std::chrono::steady_clock::now();
  CaseResult result{path, path.string()};
  const Expected<Case> one = read_case(path, settings.patterns);
  if (one) result.name = one->name;
  const Status ran = one ? run(*one, settings.update_golden, result) : Status(tl::unexpected<Error>(one.error()));
  if (!ran) result.failures.push_back(ran.error().message());
  result.seconds = seconds_since(begin);
  return result;
}

std::string text_of(const CaseResult& result, bool verbose) {
  std::string text;
  if (!result.failures.empty()) {
    text = "FAIL " + result.name + " (" + result.path.string() + ")\n";
    for (const std::string& failure : result.failures) text += indented(failure);
  } else if (verbose) {
    text = "pass " + result.name + "\n";
  }
  if (result.golden_written) text += "wrote the golden file of " + result.name + "\n";
  return text;
}

std::string summary_of(size_t cases, size_t failed) {
  return std::to_string(cases - failed) + " passed, " + std::to_string(failed) + " failed";
}

}  // namespace attn_opt
