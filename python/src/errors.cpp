#include "python/src/errors.h"

namespace attn_opt::python {
namespace {

const char* kind_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kRequirement: return "RequirementError";
    case ErrorCode::kUsage: return "UsageError";
    case ErrorCode::kInvalidInput: return "InvalidModelError";
    case ErrorCode::kUnsupported: return "UnsupportedError";
    case ErrorCode::kLimit: return "LimitError";
    case ErrorCode::kMismatch: return "MismatchError";
    case ErrorCode::kOutput: return "OutputError";
  }
  return "Error";
}

}  // namespace

nb::object exception_of(const Error& error) {
  const nb::object kind = nb::module_::import_("attn_opt._errors").attr(kind_of(error.code));
  return kind(text(error.what), text(error.where), text(error.remedy));
}

void raise(const nb::object& exception) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw nb::python_error();
}

}  // namespace attn_opt::python
