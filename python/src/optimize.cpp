// optimize(): the whole run, without the GIL but for Python's own patterns and progress.
#include <nanobind/stl/string.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "attn_opt/model_bytes.h"
#include "attn_opt/version.h"
#include "python/src/bindings.h"
#include "python/src/errors.h"
#include "python/src/options.h"
#include "src/cli/job_steps.h"
#include "src/graph/operator_name.h"
#include "src/report/names.h"
#include "src/report/report_stream.h"
#include "src/verify/seconds.h"

namespace attn_opt::python {
namespace {

struct Run {
  std::optional<Report> report;
  Status status;
  std::optional<std::string> bytes;       ///< of the model, if they were asked for and it changed
  std::string json, text;                 ///< the report
  std::vector<std::string> explanations;  ///< of each site, then of each rewrite
};

void write_texts(Run& run) {
  run.json = to_json(*run.report).dump();
  run.text = to_text(*run.report, true);
  for (const SiteReport& site : run.report->sites) run.explanations.push_back(explain(site));
  for (const RewriteReport& rewrite : run.report->rewrites) run.explanations.push_back(explain(rewrite));
}

/// Up to the report. Error: what kept it from being made.
Status run_job(const OptimizeJob& job, const OptimizeOptions& options, ModelSource& source, bool wants_bytes, Run& run) {
  const auto begin = std::chrono::steady_clock::now();
  ATTN_OPT_TRY(Model model, source.load());
  const double seconds_read = seconds_since(begin);
  ATTN_OPT_TRY(run.report, optimize_to_valid(model, options));
  run.report->seconds_read = seconds_read;
  run.report->tool_version = version();
  run.report->input = source.in_memory() ? "" : source.path;
  run.report->input_bytes = bytes_of_file(run.report->input);
  run.report->options = to_words(job.optimize);
  const auto& tell = options.progress;
  run.status = finish(job, model, *run.report, [&tell](double part) {
    if (tell) tell("writing", part);
  });
  if (run.status && wants_bytes && (run.report->changed || !source.in_memory())) {
    ATTN_OPT_TRY(run.bytes, serialize_model(std::move(model)));
  }
  run.report->seconds_total = seconds_since(begin);
  write_texts(run);
  return {};
}

/// Calls CALL, which calls Python, from within the library.
template <class Call>
void from_library(Call call) {
  const nb::gil_scoped_acquire gil;
  try {
    call();
  } catch (nb::python_error& error) {
    throw RaisedInPython{std::make_shared<nb::python_error>(std::move(error))};
  }
}

/// Asks Python whether a signal came in (Ctrl-C), and tells PROGRESS.
std::function<void(std::string_view, double)> watcher(const nb::object& progress) {
  return [&progress](std::string_view step, double part) {
    from_library([&] {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (!progress.is_none()) progress(text(step), part);
    });
  };
}

nb::object text_or_none(const std::string& words) { return words.empty() ? nb::none() : nb::object(text(words)); }

/// Calls TRACE with a pattern's or rewrite's name, the node that it was tried at, and the miss as a report has it.
decltype(OptimizeOptions::trace) tracer(const nb::object& trace) {
  if (trace.is_none()) return {};
  return [&trace](std::string_view pattern, const Node& node, const Miss& miss) {
    from_library([&] {
      nb::dict told;
      told["id"] = text(miss.id);
      told["node"] = miss.node ? nb::object(text(miss.node->label())) : nb::none();
      told["op"] = miss.node ? nb::object(text(operator_name(*miss.node))) : nb::none();
      told["found"] = text(miss.found);
      told["hint"] = text_or_none(hint_of(miss.id));
      trace(text(pattern), text(node.label()), told);
    });
  };
}

/// (bytes of the model or None, report as JSON, report as text, explanation of each site and then rewrite, exception or None)
nb::tuple optimize_model(nb::handle model, const nb::dict& given, bool wants_bytes, const nb::object& progress,
                         const nb::object& trace) {
  ModelSource source = source_of(model);
  const OptimizeJob job = job_of(given);
  OptimizeOptions options = value_or_raise(options_of(job));
  options.progress = watcher(progress);
  options.trace = tracer(trace);
  options.draw = true;
  Run run;
  Status made;
  std::shared_ptr<nb::python_error> raised;
  {
    const nb::gil_scoped_release released;
    try {
      made = run_job(job, options, source, wants_bytes, run);
    } catch (const RaisedInPython& exception) {
      raised = exception.error;
    }
  }
  if (raised) {
    raised->restore();
    throw nb::python_error();
  }
  if (!made) raise(exception_of(made.error()));
  return nb::make_tuple(run.bytes ? nb::object(nb::bytes(run.bytes->data(), run.bytes->size())) : nb::none(), text(run.json),
                        text(run.text), texts(run.explanations), run.status ? nb::none() : exception_of(run.status.error()));
}

/// A report, which is JSON, as the file of FORMAT ("html", "md") that the command writes.
nb::object rendered(const std::string& json_text, const std::string& format) {
  ModelOutcome outcome;
  outcome.report = nlohmann::json::parse(json_text);
  outcome.input = outcome.report.at("input").get<std::string>();
  if (const auto& output = outcome.report.at("output"); output.is_string()) outcome.output = output.get<std::string>();
  std::string written;
  {
    const nb::gil_scoped_release released;
    const auto stream = make_report_stream(report_format_named(format).value(), ReportScope::kOne);
    written = stream->begin();
    written += stream->add(outcome);
    written += stream->end();
  }
  return text(written);
}

}  // namespace

void bind_optimize(nb::module_& module) {
  module.def("rendered", rendered, nb::arg("report"), nb::arg("format"),
             "A report, which is given as JSON, in a format that --report knows.");
  module.def("optimize", optimize_model, nb::arg("model"), nb::arg("options"), nb::arg("wants_bytes"),
             nb::arg("progress").none(), nb::arg("trace").none(),
             "(bytes of the model or None, report as JSON, report as text, explanation of each site and then rewrite, "
             "exception or None).");
}

}  // namespace attn_opt::python
