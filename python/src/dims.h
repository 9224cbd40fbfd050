#pragma once

#include "attn_opt/shape.h"
#include "python/src/scope.h"

namespace attn_opt::python {

/// An int where the size is a number.
nb::object size_object(const Dim& dim);
nb::tuple shape_tuple(const Shape& shape);

}  // namespace attn_opt::python
