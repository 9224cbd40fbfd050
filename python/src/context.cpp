// What a pattern is given beside its node.
#include <nanobind/stl/string.h>

#include "attn_opt/canonical.h"
#include "python/src/bindings.h"
#include "python/src/dims.h"
#include "python/src/tensors.h"

namespace attn_opt::python {
namespace {

Facts& facts_of(const FactsHandle& facts) { return facts.scope->open().facts; }

Value& needed(nb::handle object, const ScopeRef& scope) { return needed_value(object, scope, "what facts are asked about"); }

nb::object shape_or_none(const FactsHandle& facts, nb::handle value) {
  const MaybeShape shape = facts_of(facts).shape(needed(value, facts.scope));
  return shape ? nb::object(shape_tuple(*shape)) : nb::none();
}

nb::object integers_or_none(const FactsHandle& facts, nb::handle value) {
  const IntegerData* data = facts_of(facts).integers(needed(value, facts.scope));
  return data ? nb::object(shape_tuple(data->values)) : nb::none();
}

nb::object constant_or_none(const FactsHandle& facts, nb::handle value) {
  const Tensor* tensor = facts_of(facts).constant(needed(value, facts.scope));
  return tensor ? nb::object(array_of(*tensor).attr("copy")()) : nb::none();
}

nb::object number_or_none(const std::optional<double>& number) { return number ? nb::cast(*number) : nb::none(); }

void bind_facts(nb::module_& module) {
  nb::class_<FactsHandle>(module, "Facts", "What is known of values without running the model. None: not known.")
      .def("shape", shape_or_none, nb::arg("value"), "Sizes: int where it is a number, else Dim.",
           nb::sig("def shape(self, value: Value) -> tuple[int | Dim, ...] | None"))
      .def(
          "type",
          [](const FactsHandle& facts, nb::handle value) {
            return type_object(facts_of(facts).type(needed(value, facts.scope)));
          },
          nb::arg("value"), "\"float32\", \"float16\", \"bool\", \"int64\", ...",
          nb::sig("def type(self, value: Value) -> str | None"))
      .def("integers", integers_or_none, nb::arg("value"), "Elements of a small integer tensor, row-major: int or Dim.",
           nb::sig("def integers(self, value: Value) -> tuple[int | Dim, ...] | None"))
      .def("constant", constant_or_none, nb::arg("value"),
           "The contents, as an array, of an initializer or of what is computed from such alone (65,536 elements at most).",
           nb::sig("def constant(self, value: Value) -> numpy.ndarray | None"))
      .def(
          "uniform",
          [](const FactsHandle& facts, nb::handle value) {
            return number_or_none(facts_of(facts).uniform(needed(value, facts.scope)));
          },
          nb::arg("value"), "The number that every element is, whatever the shape.",
          nb::sig("def uniform(self, value: Value) -> float | None"))
      .def(
          "scalar",
          [](const FactsHandle& facts, nb::handle value) {
            return number_or_none(facts_of(facts).scalar(needed(value, facts.scope)));
          },
          nb::arg("value"), "The element of a constant that has one.",
          nb::sig("def scalar(self, value: Value) -> float | None"))
      .def(
          "canonical",
          [](const FactsHandle& facts, nb::handle value) {
            return ValueHandle{facts.scope, &canonical(needed(value, facts.scope), facts_of(facts))};
          },
          nb::arg("value"),
          "VALUE, or what it is a mere copy of (Identity, Cast to the same type, Reshape to the same shape, ...).",
          nb::sig("def canonical(self, value: Value) -> Value"))
      .def(
          "is_no_op", [](const FactsHandle& facts, const NodeHandle& node) { return is_no_op(node.get(), facts_of(facts)); },
          nb::arg("node"), "True if NODE's first output is its first input, element for element.");
}

}  // namespace

void bind_context(nb::module_& module) {
  bind_facts(module);
  nb::class_<ContextHandle>(module, "Context", "What a pattern reads. Valid while it matches.")
      .def_prop_ro("facts",
                   [](const ContextHandle& context) {
                     context.scope->open();
                     return FactsHandle{context.scope};
                   })
      .def_prop_ro("build",
                   [](const ContextHandle& context) {
                     context.scope->open();
                     return BuilderHandle{context.scope};
                   })
      .def_prop_ro("anchor",
                   [](const ContextHandle& context) {
                     context.scope->open();
                     return NodeHandle{context.scope, context.scope->anchor};
                   })
      .def_prop_ro(
          "main", [](const ContextHandle& context) { return GraphHandle{context.scope, &context.scope->open().view.main()}; },
          "The main graph.")
      .def(
          "opset",
          [](const ContextHandle& context, const std::string& domain) {
            MatchContext& matching = context.scope->open();
            return matching.view.opset(*context.scope->anchor->graph, domain);
          },
          nb::arg("domain") = "", "Version of DOMAIN that the node's graph is of.");
}

}  // namespace attn_opt::python
