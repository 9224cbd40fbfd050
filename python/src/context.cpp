// What a pattern is given beside its node: facts about values, and the builder of values that the graph does not have.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "attn_opt/canonical.h"
#include "python/src/attributes.h"
#include "python/src/bindings.h"
#include "python/src/dims.h"
#include "python/src/errors.h"
#include "python/src/tensors.h"
#include "src/graph/operator_text.h"
#include "src/rewrite/operator_check.h"

namespace attn_opt::python {
namespace {

Facts& facts_of(const FactsHandle& facts) { return facts.scope->open().facts; }

Value& needed(nb::handle object, const ScopeRef& scope) {
  Value* value = value_of(object, scope, "what facts are asked about");
  if (!value) throw nb::type_error("facts are about a Value, not None");
  return *value;
}

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

GraphBuilder::Attributes given_attributes(const nb::kwargs& given) {
  GraphBuilder::Attributes attributes;
  for (const auto& [name, value] : given) attributes.push_back(attribute_of(nb::cast<std::string>(name), value));
  return attributes;
}

std::vector<Value*> inputs_of(const BuilderHandle& build, nb::handle inputs) {
  std::vector<Value*> values;
  for (nb::handle input : inputs) values.push_back(value_of(input, build.scope, "an input of a drafted node"));
  return values;
}

ValueHandle made(const BuilderHandle& build, Value* value) { return {build.scope, value}; }

/// Python's exception where no model could have a node of OP as it is drafted.
void check_drafted(const BuilderHandle& build, const std::string& op, const std::vector<Value*>& inputs, int outputs,
                   const GraphBuilder::Attributes& attributes) {
  onnx::NodeProto node;
  const OperatorText wanted(op);
  node.set_op_type(std::string(wanted.op));
  node.set_domain(std::string(wanted.domain));
  for (const Value* input : inputs) node.add_input(input ? input->name : "");
  for (int i = 0; i < outputs; ++i) node.add_output(std::to_string(i));
  for (const auto& attribute : attributes) *node.add_attribute() = attribute;
  MatchContext& matching = build.scope->open();
  const int version = wanted.domain.empty() ? matching.view.edit_opset()
                                            : static_cast<int>(matching.view.opset(*build.scope->anchor->graph, node.domain()));
  const std::string where = "the drafted node " + op;
  if (version == 0)
    raise(exception_of({ErrorCode::kUsage, where, "the model does not import the domain '" + node.domain() + "'",
                        "draft operators of ai.onnx, or of domains that the model has"}));
  if (Status valid = check_operator(node, version, where); !valid)
    raise(exception_of({ErrorCode::kUsage, valid.error().where, valid.error().what, valid.error().remedy}));
}

ValueHandle drafted(const BuilderHandle& build, const std::string& op, nb::handle inputs, const nb::kwargs& attributes) {
  GraphBuilder& builder = build.scope->builder();
  const auto values = inputs_of(build, inputs);
  const auto given = given_attributes(attributes);
  check_drafted(build, op, values, 1, given);
  return made(build, builder.node(op, values, given));
}

nb::list drafted_many(const BuilderHandle& build, const std::string& op, nb::handle inputs, int outputs,
                      const nb::kwargs& attributes) {
  if (outputs < 1 || outputs > 1024) throw nb::value_error("a node has 1 to 1024 outputs");
  GraphBuilder& builder = build.scope->builder();
  const std::vector<bool> wanted(static_cast<size_t>(outputs), true);
  const auto read = inputs_of(build, inputs);
  const auto given = given_attributes(attributes);
  check_drafted(build, op, read, outputs, given);
  const Node* node = builder.new_node(op, read, wanted, given);
  nb::list values;
  for (Value* value : node->outputs) values.append(made(build, value));
  return values;
}

ValueHandle drafted_constant(const BuilderHandle& build, nb::handle array) {
  nb::list kept;
  return made(build, build.scope->builder().constant(tensor_of(array, "a constant", kept)));
}

ValueHandle drafted_scalar(const BuilderHandle& build, double number, nb::handle type) {
  const DataType wanted = type_named(type);
  if (!is_floating(wanted))
    throw nb::value_error("scalar() makes float16, bfloat16, float32 or float64; constant() makes all else");
  return made(build, build.scope->builder().scalar(number, wanted));
}

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

void bind_builder(nb::module_& module) {
  nb::class_<BuilderHandle>(module, "Builder",
                            "Makes values that the graph does not have, above the node that is matched. What is written puts "
                            "in front of it what it needs of them.")
      .def("node", drafted, nb::arg("op"), nb::arg("inputs"), nb::arg("attributes"),
           "The output of a new node OP (\"Op\" or \"domain::Op\") of opset 24. The same node is made once.",
           nb::sig("def node(self, op: str, inputs: Sequence[Value | None], **attributes: Any) -> Value"))
      .def("nodes", drafted_many, nb::arg("op"), nb::arg("inputs"), nb::arg("outputs"), nb::arg("attributes"),
           "The outputs of a new node that has OUTPUTS of them.",
           nb::sig("def nodes(self, op: str, inputs: Sequence[Value | None], outputs: int, **attributes: Any) -> list[Value]"))
      .def("constant", drafted_constant, nb::arg("array"), "A tensor of ARRAY's type and shape.",
           nb::sig("def constant(self, array: Any) -> Value"))
      .def("scalar", drafted_scalar, nb::arg("number"), nb::arg("type") = "float32",
           "NUMBER as a tensor of rank 0 of a floating TYPE.",
           nb::sig("def scalar(self, number: float, type: str = 'float32') -> Value"))
      .def(
          "ints",
          [](const BuilderHandle& build, const std::vector<int64_t>& numbers) {
            return made(build, build.scope->builder().ints(numbers));
          },
          nb::arg("numbers"), "An int64 tensor of rank 1.", nb::sig("def ints(self, numbers: Sequence[int]) -> Value"))
      .def(
          "shape",
          [](const BuilderHandle& build, nb::handle value, int64_t begin, int64_t end) {
            return made(build, build.scope->builder().shape(needed(value, build.scope), begin, end));
          },
          nb::arg("value"), nb::arg("begin"), nb::arg("end"),
          "Sizes of the axes [BEGIN, END) of VALUE: an int64 tensor of rank 1.",
          nb::sig("def shape(self, value: Value, begin: int, end: int) -> Value"));
}

}  // namespace

void bind_context(nb::module_& module) {
  bind_facts(module);
  bind_builder(module);
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
