// Builder and GraphBuilder of Python: nodes in front of the one that is matched, and models from nothing.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/attributes.h"
#include "python/src/bindings.h"
#include "python/src/builders.h"
#include "python/src/errors.h"
#include "python/src/tensors.h"
#include "src/graph/operator_text.h"
#include "src/rewrite/operator_check.h"

namespace attn_opt::python {
namespace {

/// What nodes that BUILD makes are called: those of a pattern are written only if what it describes reads them.
std::string word_for(const BuilderHandle& build) { return build.own || build.scope->given ? "new" : "drafted"; }

std::vector<Value*> inputs_of(const BuilderHandle& build, nb::handle inputs) {
  std::vector<Value*> values;
  for (nb::handle input : inputs) values.push_back(value_of(input, build.scope, "an input of a " + word_for(build) + " node"));
  return values;
}

ValueHandle made(const BuilderHandle& build, Value* value) {
  raise_error_of(build);
  return {build.scope, value};
}

/// Python's exception where no model could have a node of OP as it is drafted. One's own builder says so itself.
void check_drafted(const BuilderHandle& build, const std::string& op, const std::vector<Value*>& inputs, int outputs,
                   const GraphBuilder::Attributes& attributes) {
  onnx::NodeProto node;
  const OperatorText wanted(op);
  node.set_op_type(std::string(wanted.op));
  node.set_domain(std::string(wanted.domain));
  for (const Value* input : inputs) node.add_input(input ? input->name : "");
  for (int i = 0; i < outputs; ++i) node.add_output(std::to_string(i));
  for (const auto& attribute : attributes) *node.add_attribute() = attribute.proto();
  if (build.own) return;  // it checks what it makes
  MatchContext& matching = build.scope->open();
  const int version = wanted.domain.empty() ? matching.view.edit_opset()
                                            : static_cast<int>(matching.view.opset(*build.scope->anchor->graph, node.domain()));
  const std::string where = "the " + word_for(build) + " node " + op;
  if (version == 0)
    raise(exception_of({ErrorCode::kUsage, where, "the model does not import the domain '" + node.domain() + "'",
                        "take operators of ai.onnx, or of domains that the model has"}));
  if (Status valid = check_operator(node, version, where); !valid)
    raise(exception_of({ErrorCode::kUsage, valid.error().where, valid.error().what, valid.error().remedy}));
}

ValueHandle drafted(const BuilderHandle& build, const std::string& op, nb::handle inputs, const nb::kwargs& attributes) {
  GraphBuilder& builder = build.builder();
  const auto values = inputs_of(build, inputs);
  const auto given = given_attributes(attributes);
  check_drafted(build, op, values, 1, given);
  return made(build, builder.node(op, values, given));
}

nb::list drafted_many(const BuilderHandle& build, const std::string& op, nb::handle inputs, int outputs,
                      const nb::kwargs& attributes) {
  if (outputs < 1 || outputs > 1024) throw nb::value_error("a node has 1 to 1024 outputs");
  GraphBuilder& builder = build.builder();
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
  return made(build, build.builder().constant(tensor_of(array, "a constant", kept)));
}

ValueHandle drafted_scalar(const BuilderHandle& build, double number, nb::handle type) {
  const DataType wanted = type_named(type);
  if (!is_floating(wanted))
    throw nb::value_error("scalar() makes float16, bfloat16, float32 or float64; constant() makes all else");
  return made(build, build.builder().scalar(number, wanted));
}

}  // namespace

void raise_error_of(const BuilderHandle& build) {
  if (!build.own) return;
  if (const Status failed = build.builder().take_status(); !failed) raise(exception_of(failed.error()));
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
            return made(build, build.builder().ints(numbers));
          },
          nb::arg("numbers"), "An int64 tensor of rank 1.", nb::sig("def ints(self, numbers: Sequence[int]) -> Value"))
      .def(
          "shape",
          [](const BuilderHandle& build, nb::handle value, int64_t begin, int64_t end) {
            return made(build, build.builder().shape(needed_value(value, build.scope, "what has a shape"), begin, end));
          },
          nb::arg("value"), nb::arg("begin"), nb::arg("end"),
          "Sizes of the axes [BEGIN, END) of VALUE: an int64 tensor of rank 1.",
          nb::sig("def shape(self, value: Value, begin: int, end: int) -> Value"));
}

}  // namespace attn_opt::python
