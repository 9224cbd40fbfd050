// The nodes that compute masks and factors written wrong: operators, operands, constants, types.
#include <limits>

#include "tests/mutation/edit_changes.h"

namespace attn_opt {
namespace {

using P = onnx::TensorProto;

bool is_float_constant(const Node& node) {
  if (!node.is("Constant")) return false;
  const auto* value = node.attribute("value");
  return value && is_floating(static_cast<DataType>(value->t().data_type()));
}

double number_of(const Node& node) {
  auto tensor = to_tensor(node.attribute("value")->t(), inline_tensors())->cast(P::DOUBLE);
  return tensor->data<double>()[0];
}

void set_number(Node& node, double number) {
  auto* tensor = attribute_of(node, "value")->mutable_t();
  *tensor = to_proto(*Tensor::scalar<double>(number).cast(static_cast<DataType>(tensor->data_type())));
}

/// The constant that each place of READER's input number INPUT reads becomes CHANGE of what it is.
EditMutation of_number(const std::string& reader, size_t input, std::string what, std::string change, double (*to)(double)) {
  return {std::move(what), std::move(change), [=](const Emission& emission, Facts&) {
            EditChanges changes;
            const auto& nodes = emission.edit.nodes();
            for (size_t i = 0; i < nodes.size(); ++i) {
              const Value* value = nodes[i]->is(reader) ? nodes[i]->input(input) : nullptr;
              if (!value || !value->producer || !is_float_constant(*value->producer)) continue;
              const double number = number_of(*value->producer);
              if (to(number) == number) continue;
              changes.push_back([=](Emission& changed) {
                Node& constant = *changed.edit.nodes()[i]->inputs[input]->producer;
                set_number(constant, to(number));
              });
            }
            return changes;
          }};
}

EditMutation becomes_op(const std::string& from, const std::string& to) {
  return at_each(from, to + " in its place", is_op(from), [to](Emission&, Node& node) { node.proto->set_op_type(to); });
}

EditMutation operands_exchanged(const std::string& op, size_t one, size_t other, std::string change) {
  return at_each(op, std::move(change), is_op(op),
                 [=](Emission&, Node& node) { std::swap(node.inputs[one], node.inputs[other]); });
}

EditMutation takes_alone(const std::string& op, int input, std::string change) {
  const auto fits = [=](const Node& node) { return node.is(op.c_str()) && node.input(static_cast<size_t>(input)); };
  return at_each(op, std::move(change), fits, [=](Emission&, Node& node) { bypass(node, input); });
}

EditMutation cast_to(DataType type, std::string change) {
  const auto fits = [=](const Node& node) { return node.is("Cast") && node.int_attribute("to", 0) != type; };
  return at_each("Cast", std::move(change), fits,
                 [=](Emission&, Node& node) { set_attribute(node, GraphBuilder::attribute("to", int64_t{type})); });
}

/// A Cast of NUMBER's type is right in its result and wrong in what it passes through.
EditMutation cast_through(DataType type, std::string change) {
  return at_each("Cast", std::move(change), is_op("Cast"), [=](Emission& emission, Node& node) {
    insert_before(emission, node, 0, "Cast", {GraphBuilder::attribute("to", int64_t{type})});
  });
}

std::vector<EditMutation> number_mutations() {
  std::vector<EditMutation> all;
  struct Reader {
    const char* op;
    size_t input;
    const char* what;
  };
  constexpr Reader kReaders[] = {{"Mul", 1, "factor"}, {"Where", 1, "number kept"}, {"Where", 2, "number laid over"}};
  struct To {
    const char* change;
    double (*to)(double);
  };
  constexpr To kChanges[] = {
      {"x 1.01", [](double x) { return x * 1.01; }}, {"off by 64 ulp", [](double x) { return x * (1 + 64 * 0x1p-23); }},
      {"negated", [](double x) { return -x; }},      {"doubled", [](double x) { return x * 2; }},
      {"halved", [](double x) { return x / 2; }},    {"0", [](double) { return 0.0; }},
      {"+ 1", [](double x) { return x + 1; }}};
  for (const Reader& reader : kReaders)
    for (const To& to : kChanges) all.push_back(of_number(reader.op, reader.input, reader.what, to.change, to.to));
  all.push_back(of_number("Max", 1, "floor", "0", [](double) { return 0.0; }));
  all.push_back(of_number("Max", 1, "floor", "-inf", [](double) { return -std::numeric_limits<double>::infinity(); }));
  return all;
}

}  // namespace

std::vector<EditMutation> arithmetic_mutations() {
  std::vector<EditMutation> all = number_mutations();
  const std::vector<EditMutation> more = {
      becomes_op("Mul", "Div"),
      becomes_op("Mul", "Add"),
      becomes_op("Div", "Mul"),
      becomes_op("Add", "Sub"),
      becomes_op("Add", "Mul"),
      becomes_op("Max", "Min"),
      becomes_op("Not", "Identity"),
      operands_exchanged("Where", 1, 2, "branches exchanged"),
      operands_exchanged("Div", 0, 1, "operands exchanged"),
      takes_alone("Where", 1, "the first branch alone"),
      takes_alone("Where", 2, "the second branch alone"),
      takes_alone("Mul", 0, "left out"),
      takes_alone("Div", 0, "left out"),
      takes_alone("Add", 0, "the first operand alone"),
      takes_alone("Add", 1, "the second operand alone"),
      takes_alone("Max", 0, "left out"),
      takes_alone("Min", 0, "left out"),
      at_each("Where", "condition negated", is_op("Where"),
              [](Emission& emission, Node& node) { insert_before(emission, node, 0, "Not"); }),
      cast_to(P::DOUBLE, "to double"),
      cast_to(P::FLOAT, "to float32"),
      cast_to(P::INT32, "to int32"),
      cast_through(P::BOOL, "through bool"),
      cast_through(P::INT32, "through int32"),
  };
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace attn_opt
