#include "python/src/calls.h"

namespace attn_opt::python {
namespace {

/// The exception object that ERROR holds, with its traceback.
nb::object exception_in(nb::python_error& error) {
  error.restore();
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return nb::steal(value);
}

}  // namespace

Miss miss_of(nb::handle given, Node& anchor, const ScopeRef& scope) {
  Miss miss;
  miss.id = field_of<std::string>(given, "Miss", "id");
  miss.found = field_of<std::string>(given, "Miss", "detail");
  miss.peeled = field_of<std::vector<std::string>>(given, "Miss", "peeled");
  miss.node = &anchor;
  if (nb::object node = given.attr("node"); !node.is_none()) miss.node = &node_of(node, scope, "Miss.node");
  return miss;
}

std::shared_ptr<nb::python_error> explained(nb::python_error& error, const std::string& pattern, const Node& anchor) {
  if (!error.matches(PyExc_Exception)) return std::make_shared<nb::python_error>(std::move(error));
  try {
    const nb::object cause = exception_in(error);
    raise(nb::module_::import_("attn_opt._errors").attr("pattern_error")(text(pattern), text(anchor.label()), cause));
  } catch (nb::python_error& raised) {
    return std::make_shared<nb::python_error>(std::move(raised));
  }
}

}  // namespace attn_opt::python
