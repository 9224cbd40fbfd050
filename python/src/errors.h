// Errors of the library as Python exceptions.
#pragma once

#include "attn_opt/status.h"
#include "python/src/scope.h"

namespace attn_opt::python {

/// ERROR as the exception of attn_opt._errors that stands for it. The GIL must be held.
nb::object exception_of(const Error& error);
[[noreturn]] void raise(const nb::object& exception);

template <class T>
T value_or_raise(Expected<T> result) {
  if (!result) raise(exception_of(result.error()));
  return *std::move(result);
}

/// Thrown through the library when Python raised in what the library called. It is no std::exception: nothing on the way
/// must take it for a failure of its own.
struct RaisedInPython {
  std::shared_ptr<nb::python_error> error;
};

}  // namespace attn_opt::python
