// Node, Value and Graph as Python sees them while its pattern matches.
#include <nanobind/stl/string.h>

#include <utility>

#include "attn_opt/canonical.h"
#include "python/src/attributes.h"
#include "python/src/bindings.h"
#include "python/src/dims.h"
#include "python/src/errors.h"
#include "python/src/tensors.h"

namespace attn_opt::python {
namespace {

template <class T, class List>
nb::list handles(const ScopeRef& scope, const List& objects) {
  nb::list all;
  for (T* object : objects) all.append(handle_or_none(scope, object));
  return all;
}

nb::list nodes_of(const GraphHandle& graph) {
  nb::list nodes;
  for (Node* node : graph.get().nodes())
    if (!node->removed) nodes.append(NodeHandle{graph.scope, node});
  return nodes;
}

nb::dict attributes_of(const NodeHandle& node) {
  nb::dict attributes;
  for (const auto& attribute : node.get().proto->attribute())
    attributes[text(attribute.name())] = attribute_value(attribute, node);
  return attributes;
}

nb::object attribute_or(const NodeHandle& node, const std::string& name, nb::object otherwise) {
  const onnx::AttributeProto* attribute = node.get().attribute(name);
  return attribute ? attribute_value(*attribute, node) : std::move(otherwise);
}

nb::list uses_of(const ValueHandle& value) {
  nb::list uses;
  for (const Use& use : value.get().uses) uses.append(nb::make_tuple(handle_or_none(value.scope, use.node), use.input));
  return uses;
}

nb::object dims_or_none(const ValueHandle& value) {
  const auto sizes = GraphBuilder::sizes(value.get());
  if (!sizes) return nb::none();
  nb::list dims;
  for (const AxisSize& size : *sizes) {
    const auto* number = std::get_if<int64_t>(&size);
    if (number)
      dims.append(*number);
    else
      dims.append(std::get<std::string>(size).empty() ? nb::object(nb::none()) : nb::object(text(std::get<std::string>(size))));
  }
  return nb::tuple(dims);
}

template <class T>
size_t hash_of(const Handle<T>& handle) {
  return std::hash<const T*>()(handle.object) >> 1;
}

void bind_node(nb::module_& module) {
  nb::class_<NodeHandle>(module, "Node", "A node of the graph. Valid as its values are.")
      .def_prop_ro("op_type", [](const NodeHandle& node) { return text(node.get().op()); })
      .def_prop_ro(
          "domain", [](const NodeHandle& node) { return text(node.get().domain()); }, "\"\" for ai.onnx.")
      .def_prop_ro(
          "name", [](const NodeHandle& node) { return text(node.get().label()); },
          "The node's name, or that of its first output.")
      .def_prop_ro(
          "id", [](const NodeHandle& node) { return node.get().id; }, "A number that no other node of the model has.")
      .def_prop_ro(
          "inputs", [](const NodeHandle& node) { return handles<Value>(node.scope, node.get().inputs); },
          "None: an omitted optional input.", nb::for_getter(nb::sig("def inputs(self, /) -> list[Value | None]")))
      .def_prop_ro(
          "outputs", [](const NodeHandle& node) { return handles<Value>(node.scope, node.get().outputs); },
          "None: an omitted optional output.", nb::for_getter(nb::sig("def outputs(self, /) -> list[Value | None]")))
      .def_prop_ro("graph", [](const NodeHandle& node) { return GraphHandle{node.scope, node.get().graph}; })
      .def_prop_ro(
          "bodies", [](const NodeHandle& node) { return handles<Graph>(node.scope, node.get().bodies); },
          "Graphs in its attributes.", nb::for_getter(nb::sig("def bodies(self, /) -> list[Graph]")))
      .def_prop_ro("attributes", attributes_of, "By name: int, float, str, lists of them, arrays, Graphs.",
                   nb::for_getter(nb::sig("def attributes(self, /) -> dict[str, Any]")))
      .def("attribute", attribute_or, nb::arg("name"), nb::arg("default").none() = nb::none(),
           "The attribute NAME, or DEFAULT where the node has none.",
           nb::sig("def attribute(self, name: str, default: Any = None) -> Any"))
      .def(
          "is_op", [](const NodeHandle& node, const std::string& op) { return is_operator(node.get(), op); }, nb::arg("op"),
          "True for the operator OP: \"Op\" of ai.onnx or \"domain::Op\".")
      .def(
          "__eq__", [](const NodeHandle& one, const NodeHandle& other) { return one == other; }, nb::is_operator(),
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", hash_of<Node>)
      .def("__repr__",
           [](const NodeHandle& node) { return text("<Node " + node.get().op() + " '" + node.get().label() + "'>"); });
}

void bind_value(nb::module_& module) {
  nb::class_<ValueHandle>(module, "Value",
                          "A value of the graph. Valid while its pattern matches; of a GraphBuilder for as long as it is held.")
      .def_prop_ro("name", [](const ValueHandle& value) { return text(value.get().name); })
      .def_prop_ro(
          "producer", [](const ValueHandle& value) { return handle_or_none(value.scope, value.get().producer); },
          "The node that makes it; None: a graph's input or an initializer.",
          nb::for_getter(nb::sig("def producer(self, /) -> Node | None")))
      .def_prop_ro(
          "output", [](const ValueHandle& value) { return value.get().output; }, "Which output of its producer it is.")
      .def_prop_ro("uses", uses_of, "(node, number of its input) of each read; a node of None: an output of a nested graph.",
                   nb::for_getter(nb::sig("def uses(self, /) -> list[tuple[Node | None, int]]")))
      .def_prop_ro("graph", [](const ValueHandle& value) { return GraphHandle{value.scope, value.get().graph}; })
      .def_prop_ro(
          "type", [](const ValueHandle& value) { return type_object(GraphBuilder::type(value.get())); },
          "As it is declared, or was inferred by a GraphBuilder: \"float32\", ...; None: not known. Facts know more.",
          nb::for_getter(nb::sig("def type(self, /) -> str | None")))
      .def_prop_ro(
          "dims", dims_or_none,
          "Sizes as they are declared, or were inferred by a GraphBuilder: int, str, or None where one is not known; None: "
          "of any rank. Facts know more.",
          nb::for_getter(nb::sig("def dims(self, /) -> tuple[int | str | None, ...] | None")))
      .def_prop_ro("is_input", [](const ValueHandle& value) { return value.get().is_input; })
      .def_prop_ro("is_output", [](const ValueHandle& value) { return value.get().is_output; })
      .def_prop_ro("is_initializer", [](const ValueHandle& value) { return value.get().initializer != nullptr; })
      .def(
          "__eq__", [](const ValueHandle& one, const ValueHandle& other) { return one == other; }, nb::is_operator(),
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", hash_of<Value>)
      .def("__repr__", [](const ValueHandle& value) { return text("<Value '" + value.get().name + "'>"); });
}

void bind_graph_class(nb::module_& module) {
  nb::class_<GraphHandle>(module, "Graph",
                          "The main graph, a body of If, Loop or Scan, or a local function. Valid while its pattern matches.")
      .def_prop_ro("nodes", nodes_of, "In the order of the file.", nb::for_getter(nb::sig("def nodes(self, /) -> list[Node]")))
      .def_prop_ro(
          "inputs", [](const GraphHandle& graph) { return handles<Value>(graph.scope, graph.get().inputs()); },
          nb::for_getter(nb::sig("def inputs(self, /) -> list[Value]")))
      .def_prop_ro(
          "outputs", [](const GraphHandle& graph) { return handles<Value>(graph.scope, graph.get().outputs()); },
          nb::for_getter(nb::sig("def outputs(self, /) -> list[Value]")))
      .def_prop_ro(
          "parent", [](const GraphHandle& graph) { return handle_or_none(graph.scope, graph.get().parent()); },
          nb::for_getter(nb::sig("def parent(self, /) -> Graph | None")))
      .def_prop_ro(
          "owner", [](const GraphHandle& graph) { return handle_or_none(graph.scope, graph.get().owner()); },
          "The node that it is a body of.", nb::for_getter(nb::sig("def owner(self, /) -> Node | None")))
      .def(
          "find",
          [](const GraphHandle& graph, const std::string& name) { return handle_or_none(graph.scope, graph.get().find(name)); },
          nb::arg("name"), "The value called NAME here or in an enclosing graph, or None.",
          nb::sig("def find(self, name: str) -> Value | None"))
      .def(
          "__eq__", [](const GraphHandle& one, const GraphHandle& other) { return one == other; }, nb::is_operator(),
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", hash_of<Graph>);
}

}  // namespace

void bind_graph(nb::module_& module) {
  bind_node(module);
  bind_value(module);
  bind_graph_class(module);
}

}  // namespace attn_opt::python
