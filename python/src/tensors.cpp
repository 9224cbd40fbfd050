#include "python/src/tensors.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace attn_opt::python {
namespace {

using ReadBytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OwnedBytes = nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>;

nb::module_ arrays() { return nb::module_::import_("attn_opt._arrays"); }

nb::list dims_list(const Dims& dims) {
  nb::list list;
  for (const int64_t dim : dims) list.append(dim);
  return list;
}

nb::object strings_of(const Tensor& tensor) {
  nb::list strings;
  for (const std::string& one : tensor.data<std::string>()) strings.append(nb::bytes(one.data(), one.size()));
  return arrays().attr("strings")(strings, dims_list(tensor.dims()));
}

Tensor of_strings(nb::handle strings, Dims dims) {
  std::vector<std::string> all;
  for (nb::handle one : strings) {
    const auto bytes = nb::cast<nb::bytes>(one);
    all.emplace_back(bytes.c_str(), bytes.size());
  }
  return Tensor::of<std::string>(std::move(dims), all);
}

}  // namespace

nb::object array_of(const Tensor& tensor) {
  if (!tensor.has_value() || tensor.is_empty_optional()) return nb::none();
  if (tensor.is_sequence()) {
    nb::list elements;
    for (const Tensor& element : tensor.elements()) elements.append(array_of(element));
    return elements;
  }
  if (tensor.type() == onnx::TensorProto::STRING) return strings_of(tensor);
  auto* shared = new Tensor(tensor);
  const nb::capsule owner(shared, [](void* held) noexcept { delete static_cast<Tensor*>(held); });
  const auto bytes = shared->bytes();
  const OwnedBytes view(const_cast<std::byte*>(bytes.data()), {bytes.size()}, owner);
  return arrays().attr("array")(nb::cast(view), static_cast<int>(tensor.type()), dims_list(tensor.dims()));
}

Tensor tensor_of(nb::handle array, const std::string& name, nb::list& kept) {
  if (array.is_none()) return Tensor::empty_optional();
  if (nb::cast<bool>(arrays().attr("is_sequence")(array))) {
    std::vector<Tensor> elements;
    for (nb::handle element : array) elements.push_back(tensor_of(element, name, kept));
    return Tensor::sequence(std::move(elements));
  }
  const auto [type, dims, data] =
      nb::cast<std::tuple<int, Dims, nb::object>>(nb::tuple(arrays().attr("parts")(array, text(name))));
  if (type == onnx::TensorProto::STRING) return of_strings(data, dims);
  kept.append(data);
  const auto bytes = nb::cast<ReadBytes>(data);
  return Tensor::view(static_cast<DataType>(type), dims, std::as_bytes(std::span(bytes.data(), bytes.size())));
}

nb::object type_object(DataType type) {
  return type == onnx::TensorProto::UNDEFINED ? nb::none() : nb::object(arrays().attr("type_name")(static_cast<int>(type)));
}

DataType type_named(nb::handle name) {
  return name.is_none() ? onnx::TensorProto::UNDEFINED
                        : static_cast<DataType>(nb::cast<int>(arrays().attr("type_number")(name)));
}

}  // namespace attn_opt::python
