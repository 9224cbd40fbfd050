// test(): pattern regression cases, with patterns of Python's beside those of attn-opt.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/bindings.h"
#include "python/src/errors.h"
#include "python/src/patterns.h"
#include "src/cli/cases/case_runner.h"
#include "src/cli/options/optimize_arguments.h"

namespace attn_opt::python {
namespace {

/// An exception that ends no program, raised by a pattern, fails the case and no other.
CaseResult run_one(const std::filesystem::path& path, const CaseSettings& settings) {
  try {
    const nb::gil_scoped_release released;
    return run_case(path, settings);
  } catch (const RaisedInPython& raised) {
    if (!raised.error->matches(PyExc_Exception)) {
      raised.error->restore();
      throw nb::python_error();
    }
    return {path, path.string(), {nb::cast<std::string>(nb::str(raised.error->value()))}};
  }
}

nb::dict result_dict(const CaseResult& result) {
  nb::dict one;
  one["name"] = text(result.name);
  one["path"] = text(result.path.string());
  one["failures"] = texts(result.failures);
  one["seconds"] = result.seconds;
  one["text"] = text(text_of(result, false));
  return one;
}

/// (a dict for each case, how many passed and failed as the command says it)
nb::tuple test_cases(const std::vector<std::string>& paths, const std::vector<std::string>& rules, nb::handle patterns,
                     nb::handle rewrites, bool update_golden) {
  OptimizeArguments arguments;
  arguments.patterns = rules;
  arguments.more_patterns = patterns_of(patterns);
  arguments.more_rewrites = rewrites_of(rewrites);
  value_or_raise(to_options(arguments));  // what is wrong with the patterns is said once
  const CaseSettings settings{{arguments.patterns, arguments.more_patterns, arguments.more_rewrites}, update_golden};
  const auto cases = value_or_raise(find_cases(paths));
  nb::list results;
  size_t failed = 0;
  for (const auto& path : cases) {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    const CaseResult result = run_one(path, settings);
    failed += !result.failures.empty();
    results.append(result_dict(result));
  }
  return nb::make_tuple(results, text(summary_of(cases.size(), failed)));
}

}  // namespace

void bind_cases(nb::module_& module) {
  module.def("test", test_cases, nb::arg("paths"), nb::arg("rules"), nb::arg("patterns"), nb::arg("rewrites"),
             nb::arg("update_golden"), "(a dict for each case, how many passed and failed).");
}

}  // namespace attn_opt::python
