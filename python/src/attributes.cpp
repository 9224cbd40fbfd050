#include "python/src/attributes.h"

#include <nanobind/stl/string.h>

#include "python/src/builders.h"
#include "python/src/errors.h"
#include "python/src/tensors.h"

namespace attn_opt::python {
namespace {

using A = onnx::AttributeProto;

template <class List, class Convert>
nb::list listed(const List& list, Convert convert) {
  nb::list values;
  for (const auto& one : list) values.append(convert(one));
  return values;
}

nb::object array_in(const onnx::TensorProto& tensor) { return array_of(value_or_raise(to_tensor(tensor, inline_tensors()))); }

/// The body of NODE that the attribute called NAME holds as its number INDEX.
nb::object body_of(const NodeHandle& node, const std::string& name, int index) {
  size_t body = 0;
  for (const auto& attribute : node.object->proto->attribute()) {
    if (attribute.name() == name) return handle_or_none(node.scope, node.object->bodies[body + static_cast<size_t>(index)]);
    body += static_cast<size_t>(attribute.graphs_size() + (attribute.has_g() ? 1 : 0));
  }
  return nb::none();
}

void set_number(nb::handle value, A& attribute) {
  if (PyIndex_Check(value.ptr())) {
    attribute.set_type(A::INT);
    attribute.set_i(nb::cast<int64_t>(nb::steal(PyNumber_Index(value.ptr()))));
  } else {
    attribute.set_type(A::FLOAT);
    attribute.set_f(static_cast<float>(nb::cast<double>(nb::steal(PyNumber_Float(value.ptr())))));
  }
}

std::string bytes_of(nb::handle value) {
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  const auto bytes = nb::cast<nb::bytes>(value);
  return {bytes.c_str(), bytes.size()};
}

bool is_string(nb::handle value) { return nb::isinstance<nb::str>(value) || nb::isinstance<nb::bytes>(value); }

/// LIST holds elements of one kind; the kind is that of the first but for ints among floats.
void set_list(nb::handle list, A& attribute) {
  attribute.set_type(A::INTS);
  for (nb::handle one : list) {
    if (is_string(one))
      attribute.set_type(A::STRINGS);
    else if (!PyIndex_Check(one.ptr()) && attribute.type() == A::INTS)
      attribute.set_type(A::FLOATS);
  }
  for (nb::handle one : list) {
    if (attribute.type() == A::STRINGS)
      attribute.add_strings(bytes_of(one));
    else if (attribute.type() == A::INTS)
      attribute.add_ints(nb::cast<int64_t>(nb::steal(PyNumber_Index(one.ptr()))));
    else
      attribute.add_floats(static_cast<float>(nb::cast<double>(nb::steal(PyNumber_Float(one.ptr())))));
  }
}

}  // namespace

nb::object attribute_value(const A& attribute, const NodeHandle& node) {
  switch (attribute.type()) {
    case A::INT: return nb::cast(attribute.i());
    case A::FLOAT: return nb::cast(attribute.f());
    case A::STRING: return text(attribute.s());
    case A::TENSOR: return array_in(attribute.t());
    case A::GRAPH: return body_of(node, attribute.name(), 0);
    case A::INTS: return listed(attribute.ints(), [](int64_t one) { return one; });
    case A::FLOATS: return listed(attribute.floats(), [](float one) { return one; });
    case A::STRINGS: return listed(attribute.strings(), [](const std::string& one) { return text(one); });
    case A::TENSORS: return listed(attribute.tensors(), array_in);
    case A::GRAPHS: {
      nb::list bodies;
      for (int i = 0; i < attribute.graphs_size(); ++i) bodies.append(body_of(node, attribute.name(), i));
      return bodies;
    }
    default: {
      const std::string bytes = attribute.SerializeAsString();
      return nb::bytes(bytes.data(), bytes.size());
    }
  }
}

A attribute_of(const std::string& name, nb::handle value) {
  if (nb::isinstance<GraphBuilderHandle>(value)) return Attribute(name, nb::cast<GraphBuilderHandle&>(value).builder());
  if (nb::isinstance<Parameter>(value)) {
    const auto& parameter = nb::cast<Parameter&>(value);
    return Attribute::reference(name, parameter.name, parameter.type);
  }
  A attribute;
  attribute.set_name(name);
  if (is_string(value)) {
    attribute.set_type(A::STRING);
    attribute.set_s(bytes_of(value));
  } else if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
    set_list(value, attribute);
  } else if (nb::hasattr(value, "dtype") && nb::hasattr(value, "shape") && nb::len(nb::object(value.attr("shape"))) > 0) {
    nb::list kept;
    attribute.set_type(A::TENSOR);
    *attribute.mutable_t() = to_proto(tensor_of(value, name, kept));
  } else if (PyNumber_Check(value.ptr())) {
    set_number(value, attribute);
  } else {
    throw nb::type_error(("attribute '" + name + "' is no int, float, str, list of such, array or body").c_str());
  }
  return attribute;
}

Attributes given_attributes(const nb::kwargs& given) {
  Attributes attributes;
  for (const auto& [name, value] : given) attributes.emplace_back(attribute_of(nb::cast<std::string>(name), value));
  return attributes;
}

}  // namespace attn_opt::python
