// Tensors of the executor and arrays of NumPy.
#pragma once

#include "attn_opt/tensor.h"
#include "python/src/scope.h"

namespace attn_opt::python {

/// An array that shares TENSOR's buffer where NumPy has the type; a list for a sequence, None for an optional that is empty.
nb::object array_of(const Tensor& tensor);

/// ARRAY (or what numpy.asarray takes, or a list of such as a sequence) as a tensor that looks into memory which KEPT then
/// keeps. NAME is what it is called in exceptions.
Tensor tensor_of(nb::handle array, const std::string& name, nb::list& kept);

/// Element types by the names of NumPy and ml_dtypes: "float32", "bfloat16", "int64", "bool", ...; None: not known.
nb::object type_object(DataType type);
DataType type_named(nb::handle name);

}  // namespace attn_opt::python
