#include "python/src/dims.h"

#include <nanobind/nanobind.h>
#include <nanobind/operators.h>
#include <nanobind/stl/string.h>

#include "python/src/bindings.h"

namespace attn_opt::python {

nb::object size_object(const Dim& dim) { return dim.is_constant() ? nb::cast(dim.value()) : nb::cast(dim); }

nb::tuple shape_tuple(const Shape& shape) {
  nb::list sizes;
  for (const Dim& dim : shape) sizes.append(size_object(dim));
  return nb::tuple(sizes);
}

namespace {

Dim dim_of(nb::handle object) {
  Dim dim;
  if (nb::try_cast(object, dim)) return dim;
  int64_t number = 0;
  if (nb::try_cast(object, number)) return number;
  throw nb::type_error("a size is an int or a Dim");
}

}  // namespace

void bind_dims(nb::module_& module) {
  nb::class_<Dim>(module, "Dim",
                  "A size: a polynomial with integer coefficients over the model's symbols. Two are equal if that is proven.")
      .def(
          "__init__", [](Dim* self, const std::string& spelled) { new (self) Dim(Dim::parse(spelled)); }, nb::arg("spelled"),
          "The expression that SPELLED is, as \"past + seq\"; else one symbol of that name.")
      .def(
          "__init__", [](Dim* self, int64_t number) { new (self) Dim(number); }, nb::arg("number"))
      .def("__str__", [](const Dim& dim) { return text(dim.str()); })
      .def("__repr__", [](const Dim& dim) { return text("Dim('" + dim.str() + "')"); })
      .def("__hash__", [](const Dim& dim) { return static_cast<int64_t>(std::hash<std::string>()(dim.str()) >> 1); })
      .def(
          "__eq__",
          [](const Dim& dim, nb::handle other) -> nb::object {
            Dim second;
            int64_t number = 0;
            if (nb::try_cast(other, second)) return nb::cast(dim == second);
            if (nb::try_cast(other, number)) return nb::cast(dim.is(number));
            return nb::borrow(Py_NotImplemented);
          },
          nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def(
          "__add__", [](const Dim& dim, nb::handle other) { return size_object(dim + dim_of(other)); }, nb::arg("other"),
          nb::sig("def __add__(self, other: int | Dim) -> int | Dim"))
      .def(
          "__radd__", [](const Dim& dim, nb::handle other) { return size_object(dim_of(other) + dim); }, nb::arg("other"),
          nb::sig("def __radd__(self, other: int | Dim) -> int | Dim"))
      .def(
          "__sub__", [](const Dim& dim, nb::handle other) { return size_object(dim - dim_of(other)); }, nb::arg("other"),
          nb::sig("def __sub__(self, other: int | Dim) -> int | Dim"))
      .def(
          "__rsub__", [](const Dim& dim, nb::handle other) { return size_object(dim_of(other) - dim); }, nb::arg("other"),
          nb::sig("def __rsub__(self, other: int | Dim) -> int | Dim"))
      .def(
          "__mul__", [](const Dim& dim, nb::handle other) { return size_object(dim * dim_of(other)); }, nb::arg("other"),
          nb::sig("def __mul__(self, other: int | Dim) -> int | Dim"))
      .def(
          "__rmul__", [](const Dim& dim, nb::handle other) { return size_object(dim_of(other) * dim); }, nb::arg("other"),
          nb::sig("def __rmul__(self, other: int | Dim) -> int | Dim"))
      .def(
          "__floordiv__",
          [](const Dim& dim, nb::handle other) {
            const Dim divisor = dim_of(other);
            if (divisor.is(0)) {
              PyErr_SetString(PyExc_ZeroDivisionError, "division of a size by zero");
              throw nb::python_error();
            }
            return size_object(floor_quotient(dim, divisor));
          },
          nb::arg("other"), nb::sig("def __floordiv__(self, other: int | Dim) -> int | Dim"));
}

}  // namespace attn_opt::python
