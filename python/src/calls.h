// Calls of what a pattern or rewrite has in Python, and what such objects give.
#pragma once

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "python/src/errors.h"
#include "python/src/scope.h"

namespace attn_opt::python {

/// The field NAME of OBJECT, an attn_opt.KIND.
template <class T>
T field_of(nb::handle object, const std::string& kind, const char* name) {
  T read;
  if (!nb::try_cast(nb::object(object.attr(name)), read))
    throw nb::type_error((kind + "." + name + " is of another type").c_str());
  return read;
}

/// What GIVEN, an attn_opt.Miss of the match at ANCHOR, says.
Miss miss_of(nb::handle given, Node& anchor, const ScopeRef& scope);

/// ERROR as a PatternError that says where, unless it ends the program. PATTERN: "pattern 'mine'", "rewrite 'mine'".
std::shared_ptr<nb::python_error> explained(nb::python_error& error, const std::string& pattern, const Node& anchor);

/// What CALL gives, which PATTERN, as explained() calls it, was asked at ANCHOR; SCOPE is closed then, unless the call is to
/// KEEP it open. Python's exceptions go through the library as RaisedInPython.
template <class Call>
auto called(const std::string& pattern, const Node& anchor, const ScopeRef& scope, Call call, bool keep = false)
    -> decltype(call()) {
  try {
    auto result = call();
    if (!keep) scope->close();
    return result;
  } catch (nb::python_error& error) {
    scope->close();
    throw RaisedInPython{explained(error, pattern, anchor)};
  } catch (const std::exception& error) {  // what nanobind would turn into a Python exception at its own border
    scope->close();
    PyErr_SetString(PyExc_TypeError, error.what());
    nb::python_error raised;
    throw RaisedInPython{explained(raised, pattern, anchor)};
  }
}

}  // namespace attn_opt::python
