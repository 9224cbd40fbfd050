// Operands exchanged, and operators for their converses.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tests/metamorphic/respelling.h"

namespace attn_opt {
namespace {

constexpr int kFirstThatBroadcasts = 7;

/// The places that FIND gives for each node of two inputs and one of OPS.
template <class Find>
std::vector<Change> places_of(Spelling& spelling, const std::set<std::string>& ops, Find find) {
  std::vector<Change> changes;
  for (Node* node : spelling.nodes()) {
    const bool has_operands = std::ranges::all_of(node->inputs, [](const Value* input) { return input != nullptr; });
    if (!node->domain().empty() || !ops.contains(node->op()) || !has_operands) continue;
    if (spelling.opset(*node) < kFirstThatBroadcasts) continue;
    if (Change change = find(*node)) changes.push_back(std::move(change));
  }
  return changes;
}

void swap_inputs(Node& node, int one, int other) {
  std::swap(*node.proto->mutable_input(one), *node.proto->mutable_input(other));
}

std::vector<Change> commuted_operands(Spelling& spelling, Random&) {
  return places_of(spelling, {"Add", "Mul", "And", "Or", "Xor", "Equal", "Max", "Min", "Sum"}, [](Node& node) -> Change {
    if (node.inputs.size() != 2) return {};
    return [&node](Spelling&) { swap_inputs(node, 0, 1); };
  });
}

std::vector<Change> turned_comparisons(Spelling& spelling, Random&) {
  static const std::map<std::string, std::string> kTurned = {
      {"Less", "Greater"}, {"Greater", "Less"}, {"LessOrEqual", "GreaterOrEqual"}, {"GreaterOrEqual", "LessOrEqual"}};
  return places_of(spelling, {"Less", "Greater", "LessOrEqual", "GreaterOrEqual"}, [](Node& node) -> Change {
    return [&node](Spelling&) {
      swap_inputs(node, 0, 1);
      node.proto->set_op_type(kTurned.at(node.op()));
    };
  });
}

/// Less(a, b) as Not(GreaterOrEqual(a, b)): on integers, since NaN is neither.
std::vector<Change> negated_comparisons(Spelling& spelling, Random&) {
  static const std::map<std::string, std::string> kOpposite = {
      {"Less", "GreaterOrEqual"}, {"Greater", "LessOrEqual"}, {"LessOrEqual", "Greater"}, {"GreaterOrEqual", "Less"}};
  constexpr int kFirstWithLessOrEqual = 12;
  return places_of(spelling, {"Less", "Greater", "LessOrEqual", "GreaterOrEqual"}, [&spelling](Node& node) -> Change {
    if (spelling.opset(node) < kFirstWithLessOrEqual || spelling.facts().type(*node.inputs[0]) != onnx::TensorProto::INT64)
      return {};
    return [&node](Spelling& d) {
      const std::string output = node.proto->output(0), opposite = d.fresh("opposite");
      node.proto->set_op_type(kOpposite.at(node.op()));
      node.proto->set_output(0, opposite);
      d.insert_after(node, node_of("Not", {opposite}, output));
    };
  });
}

std::vector<Change> negated_conditions(Spelling& spelling, Random&) {
  return places_of(spelling, {"Where"}, [](Node& node) -> Change {
    return [&node](Spelling& d) {
      const std::string negated = d.fresh("negated");
      d.insert_before(node, node_of("Not", {node.proto->input(0)}, negated));
      node.proto->set_input(0, negated);
      swap_inputs(node, 1, 2);
    };
  });
}

/// True if 1 / NUMBER, rounded to TYPE, is within what verification takes for equal.
bool has_reciprocal(double number, DataType type) {
  int exponent = 0;
  const bool is_power_of_two = std::abs(std::frexp(number, &exponent)) == 0.5;
  if (type == onnx::TensorProto::FLOAT16) return is_power_of_two && std::abs(exponent) < 10;
  return std::abs(number) >= 1e-3 && std::abs(number) <= 1e3;
}

/// A new constant for the second input of NODE whose elements are CONVERT of the old one's.
template <class Convert>
Change with_second_operand(Spelling& spelling, Node& node, const std::string& op, Convert convert) {
  const onnx::TensorProto* old = Spelling::constant(*node.inputs[1]);
  const std::vector<double> numbers = old ? spelling.numbers(*node.inputs[1]) : std::vector<double>{};
  if (numbers.empty()) return {};
  const auto type = static_cast<DataType>(old->data_type());
  std::vector<double> converted;
  for (const double number : numbers) {
    if (!convert.is_legal(number, type)) return {};
    converted.push_back(convert(number));
  }
  const std::vector<int64_t> dims(old->dims().begin(), old->dims().end());
  const auto tensor = Tensor::of<double>(dims, converted).cast(type);
  return [&node, op, proto = to_proto(*tensor)](Spelling& d) {
    node.proto->set_input(1, d.add_constant(node, proto));
    node.proto->set_op_type(op);
  };
}

struct Reciprocal {
  static bool is_legal(double number, DataType type) { return has_reciprocal(number, type); }
  double operator()(double number) const { return 1 / number; }
};

struct Negative {
  static bool is_legal(double, DataType) { return true; }
  double operator()(double number) const { return -number; }
};

/// Mul or Div by a constant as the other of the two; OPS are the operators and their converses.
template <class Convert>
std::vector<Change> converse_operators(Spelling& spelling, const std::map<std::string, std::string>& ops, Convert convert) {
  std::set<std::string> names;
  for (const auto& [op, unused] : ops) names.insert(op);
  return places_of(spelling, names, [&](Node& node) -> Change {
    if (node.inputs.size() != 2) return {};
    return with_second_operand(spelling, node, ops.at(node.op()), convert);
  });
}

std::vector<Change> reciprocals(Spelling& spelling, Random&) {
  return converse_operators(spelling, {{"Mul", "Div"}, {"Div", "Mul"}}, Reciprocal{});
}

std::vector<Change> negatives(Spelling& spelling, Random&) {
  return converse_operators(spelling, {{"Add", "Sub"}, {"Sub", "Add"}}, Negative{});
}

/// Sub(a, b) as Add(a, Neg(b)).
std::vector<Change> subtractions(Spelling& spelling, Random&) {
  return places_of(spelling, {"Sub"}, [&spelling](Node& node) -> Change {
    const DataType type = spelling.facts().type(*node.inputs[1]);
    if (type != onnx::TensorProto::FLOAT && type != onnx::TensorProto::DOUBLE) return {};
    return [&node](Spelling& d) {
      const std::string negative = d.fresh("negative");
      d.insert_before(node, node_of("Neg", {node.proto->input(1)}, negative));
      node.proto->set_input(1, negative);
      node.proto->set_op_type("Add");
    };
  });
}

/// And(a, b) as Not(Or(Not(a), Not(b))), and Or likewise.
std::vector<Change> by_de_morgan(Spelling& spelling, Random&) {
  return places_of(spelling, {"And", "Or"}, [](Node& node) -> Change {
    return [&node](Spelling& d) {
      for (int i : {0, 1}) {
        const std::string negated = d.fresh("negated");
        d.insert_before(node, node_of("Not", {node.proto->input(i)}, negated));
        node.proto->set_input(i, negated);
      }
      const std::string output = node.proto->output(0), negated = d.fresh("negated");
      node.proto->set_op_type(node.is("And") ? "Or" : "And");
      node.proto->set_output(0, negated);
      d.insert_after(node, node_of("Not", {negated}, output));
    };
  });
}

}  // namespace

std::vector<Respelling> operand_respellings() {
  std::vector<Respelling> all = {{"operands exchanged", commuted_operands},
                                 {"comparison turned", turned_comparisons},
                                 {"comparison negated", negated_comparisons},
                                 {"Where of the negated condition", negated_conditions},
                                 {"Mul and Div by the reciprocal", reciprocals},
                                 {"Add and Sub of the negative", negatives},
                                 {"Sub as Add of Neg", subtractions},
                                 {"And and Or by de Morgan", by_de_morgan}};
  for (Respelling& respelling : all) respelling.keeps_operators = false;
  return all;
}

}  // namespace attn_opt
