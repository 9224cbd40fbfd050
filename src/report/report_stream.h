// Reports of one model or of many, in the formats that files have: a model at a time, so that memory does not grow with
// their number. All are made from the JSON report, docs/schema/report-1.schema.json.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace attn_opt {

enum class ReportFormat { kJson, kMarkdown, kSarif, kJunit, kHtml, kSvg, kDot };

/// What became of one model. Texts are UTF-8.
struct ModelOutcome {
  std::string input, output;  ///< output: empty if none was written
  int status = 0;             ///< exit status (docs/cli.md)
  std::string message;        ///< the error, on one line; empty if there is none
  double seconds = 0;
  nlohmann::json report;  ///< as to_json(); null if the run ended before there was one
};

/// begin(), add() for each model, end(): their texts one after the other are the file.
class ReportStream {
 public:
  virtual ~ReportStream() = default;
  virtual std::string begin() = 0;
  virtual std::string add(const ModelOutcome& model) = 0;
  virtual std::string end() = 0;
};

/// kOne: the report of a single model. kMany: of a batch.
enum class ReportScope { kOne, kMany };
std::unique_ptr<ReportStream> make_report_stream(ReportFormat format, ReportScope scope);

/// Of the names "json", "md", "sarif", "junit", "html", "svg" and "dot".
std::optional<ReportFormat> report_format_named(std::string_view name);
/// By the ending of a file's name: .json, .md, .sarif, .sarif.json, .xml, .html, .svg or .dot.
std::optional<ReportFormat> report_format_of(std::string_view path);

/// BYTES with U+FFFD in place of what is not UTF-8.
std::string valid_utf8(const std::string& bytes);

}  // namespace attn_opt
