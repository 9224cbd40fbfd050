// GraphBuilder of Python.
#include "attn_opt/graph_builder.h"

#include <nanobind/stl/string.h>

#include <algorithm>

#include "attn_opt/model_bytes.h"
#include "python/src/attributes.h"
#include "python/src/bindings.h"
#include "python/src/builders.h"
#include "python/src/errors.h"
#include "python/src/tensors.h"

namespace attn_opt::python {

struct BuiltModel {
  explicit BuiltModel(const BuilderOptions& options)
      : main(options), facts(main.view(), inline_tensors()), context{main.view(), facts} {}

  GraphBuilder main;
  Facts facts;
  MatchContext context;
};

namespace {

void make(GraphBuilderHandle* place, int opset, const std::string& name) {
  const auto built = std::make_shared<BuiltModel>(BuilderOptions{opset, name});
  const auto scope = std::make_shared<Scope>(Scope{&built->context});
  scope->built = built;
  new (place) GraphBuilderHandle{{scope, built->main}};
  raise_error_of(*place);
}

/// DIMS: int, str, or None where a size is not known.
AxisSizes sizes_of(nb::handle dims) {
  AxisSizes sizes;
  for (nb::handle one : dims) {
    if (one.is_none())
      sizes.emplace_back(std::string());
    else if (nb::isinstance<nb::str>(one))
      sizes.emplace_back(nb::cast<std::string>(one));
    else
      sizes.emplace_back(nb::cast<int64_t>(one));
  }
  return sizes;
}

/// TYPE by its name with DIMS, of which None are not known; an onnx.TypeProto; None for no type.
onnx::TypeProto type_of(nb::handle type, nb::handle dims) {
  if (type.is_none()) return {};
  if (!nb::hasattr(type, "SerializeToString"))
    return dims.is_none() ? tensor_type(type_named(type)) : tensor_type(type_named(type), sizes_of(dims));
  const auto bytes = nb::cast<nb::bytes>(type.attr("SerializeToString")());
  onnx::TypeProto proto;
  if (!proto.ParseFromArray(bytes.c_str(), static_cast<int>(bytes.size())))
    throw nb::value_error("the type is no onnx.TypeProto");
  return proto;
}

ValueHandle checked(const GraphBuilderHandle& build, Value* value) {
  raise_error_of(build);
  return {build.scope, value};
}

ValueHandle input(const GraphBuilderHandle& build, const std::string& name, nb::handle type, nb::handle dims) {
  return checked(build, build.builder().input(name, type_of(type, dims)));
}

ValueHandle initializer(const GraphBuilderHandle& build, const std::string& name, nb::handle array) {
  nb::list kept;
  return checked(build, build.builder().initializer(name, tensor_of(array, name, kept)));
}

ValueHandle output(const GraphBuilderHandle& build, const std::string& name, nb::handle value) {
  return checked(build, build.builder().output(name, &needed_value(value, build.scope, "an output")));
}

void declare(const GraphBuilderHandle& build, nb::handle value, nb::handle type, nb::handle dims) {
  build.builder().declare(&needed_value(value, build.scope, "what is declared"), type_of(type, dims));
  raise_error_of(build);
}

GraphBuilderHandle body(const GraphBuilderHandle& build, const std::string& name) {
  return {{build.scope, build.builder().body(name)}};
}

GraphBuilderHandle function(const GraphBuilderHandle& build, const std::string& domain, const std::string& name,
                            const nb::kwargs& defaults) {
  GraphBuilderHandle made{{build.scope, build.builder().function(domain, name, given_attributes(defaults))}};
  raise_error_of(build);
  return made;
}

nb::object model(const GraphBuilderHandle& build) {
  Model made = value_or_raise(build.builder().model());
  const std::string bytes = value_or_raise(serialize_model(std::move(made)));
  return nb::module_::import_("attn_opt._models").attr("proto_of_bytes")(nb::bytes(bytes.data(), bytes.size()));
}

void make_parameter(Parameter* place, const std::string& name, const std::string& type) {
  std::string upper = type;
  std::ranges::transform(upper, upper.begin(), [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  onnx::AttributeProto::AttributeType parsed = onnx::AttributeProto::UNDEFINED;
  if (!onnx::AttributeProto::AttributeType_Parse(upper, &parsed) || parsed == onnx::AttributeProto::UNDEFINED)
    throw nb::value_error("the type of an attribute is int, float, string, tensor, graph, or one of these with an s");
  new (place) Parameter{name, parsed};
}

}  // namespace

void bind_graph_builder(nb::module_& module) {
  nb::class_<Parameter>(module, "Parameter", "In a function of a GraphBuilder: an attribute whose value is the call's.")
      .def("__init__", make_parameter, nb::arg("name"), nb::arg("type"),
           "What the call gives as its attribute NAME, of TYPE: \"int\", \"float\", \"string\", \"tensor\", \"ints\", ...");
  nb::class_<GraphBuilderHandle, BuilderHandle>(
      module, "GraphBuilder",
      "Makes a model from nothing. Each node is checked as it is made; its outputs have the types that ONNX infers.")
      .def("__init__", make, nb::arg("opset") = kEditOpset, nb::arg("name") = "main")
      .def(
          "input", input, nb::arg("name"), nb::arg("type").none() = "float32", nb::arg("dims").none() = nb::none(),
          "An input of the graph. DIMS: int, str or, of unknown size, None; None alone: of any rank. TYPE: a name, an "
          "onnx.TypeProto, or None in a function.",
          nb::sig("def input(self, name: str, type: Any = 'float32', dims: Sequence[int | str | None] | None = None) -> Value"))
      .def("initializer", initializer, nb::arg("name"), nb::arg("array"), "A constant of the graph that has a name.",
           nb::sig("def initializer(self, name: str, array: Any) -> Value"))
      .def("output", output, nb::arg("name"), nb::arg("value"),
           "VALUE becomes the next output and is called NAME. What has a name already is copied.",
           nb::sig("def output(self, name: str, value: Value) -> Value"))
      .def("declare", declare, nb::arg("value"), nb::arg("type"), nb::arg("dims").none() = nb::none(),
           "VALUE is of TYPE and DIMS, of which ONNX infers less or nothing.",
           nb::sig("def declare(self, value: Value, type: Any, dims: Sequence[int | str | None] | None = None) -> None"))
      .def("body", body, nb::arg("name") = "body",
           "The body of an If, Loop or Scan of this graph, whose values its nodes read too. A node takes it as an attribute.")
      .def("function", function, nb::arg("domain"), nb::arg("name"), nb::arg("defaults"),
           "A function of the model, called by the operator \"DOMAIN::NAME\". Its attributes are the Parameters of its nodes.",
           nb::sig("def function(self, domain: str, name: str, **defaults: Any) -> GraphBuilder"))
      .def(
          "import_opset",
          [](const GraphBuilderHandle& build, const std::string& domain, int version) {
            build.builder().import_opset(domain, version);
          },
          nb::arg("domain"), nb::arg("version"), "DOMAIN's operators are those of VERSION.")
      .def(
          "set_metadata",
          [](const GraphBuilderHandle& build, const std::string& key, const std::string& value) {
            build.builder().set_metadata(key, value);
          },
          nb::arg("key"), nb::arg("value"))
      .def(
          "begin_names_with",
          [](const GraphBuilderHandle& build, const std::string& stem) { build.builder().begin_names_with(stem); },
          nb::arg("stem"), "Names of what is made from now on begin with STEM.")
      .def("model", model, "The onnx.ModelProto, after ONNX's checker with full_check. The builder can be used further.",
           nb::sig("def model(self) -> Any"));
}

}  // namespace attn_opt::python
