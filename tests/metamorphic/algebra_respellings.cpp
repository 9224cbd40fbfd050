// Equal algebra: selections, masks, sums and factors by other operators.
#include <algorithm>
#include <cmath>
#include <optional>

#include "attn_opt/canonical.h"
#include "tests/metamorphic/respelling.h"

namespace attn_opt {
namespace {

constexpr int kFirstThatBroadcasts = 7;

/// Writes nodes in front of one, or in its place.
class Writer {
 public:
  Writer(Spelling& spelling, Node& node) : spelling_(spelling), node_(node) {}

  std::string made(const std::string& op, const std::vector<std::string>& inputs) {
    const std::string output = spelling_.fresh(op);
    spelling_.insert_before(node_, node_of(op, inputs, output));
    return output;
  }
  std::string cast(const std::string& value, DataType type) {
    const std::string output = spelling_.fresh("Cast");
    onnx::NodeProto node = node_of("Cast", {value}, output);
    set_attribute(node, "to", int64_t{type});
    spelling_.insert_before(node_, node);
    return output;
  }
  std::string number(double value, DataType type) { return spelling_.add_constant(node_, filled_tensor(type, {}, value)); }
  /// OP of INPUTS in the place of the node.
  void becomes(const std::string& op, const std::vector<std::string>& inputs) {
    node_.proto->set_op_type(op);
    node_.proto->clear_input();
    node_.proto->clear_attribute();
    for (const std::string& input : inputs) node_.proto->add_input(input);
  }

 private:
  Spelling& spelling_;
  Node& node_;
};

/// The places that FIND gives for each node of OP that makes floats of one type and has all its inputs.
template <class Find>
std::vector<Change> places_of(Spelling& spelling, const std::string& op, Find find) {
  std::vector<Change> changes;
  for (Node* node : spelling.nodes()) {
    const bool has_operands = std::ranges::all_of(node->inputs, [](const Value* input) { return input != nullptr; });
    if (!node->is(op) || !has_operands || spelling.opset(*node) < kFirstThatBroadcasts) continue;
    const DataType type = spelling.facts().type(*node->outputs[0]);
    if (type != onnx::TensorProto::FLOAT && type != onnx::TensorProto::DOUBLE) continue;
    if (Change change = find(*node, type)) changes.push_back(std::move(change));
  }
  return changes;
}

/// True if VALUE is a product, perhaps with a number: nothing of it was masked.
bool is_unmasked_product(Value& value, Facts& facts) {
  const Node* node = canonical(value, facts).producer;
  for (int step = 0; step < 4 && node; ++step) {
    if (node->is("MatMul") || node->is("Einsum")) return true;
    if (!(node->is("Mul") || node->is("Div")) || !facts.uniform(*node->inputs[1])) return false;
    node = canonical(*node->inputs[0], facts).producer;
  }
  return false;
}

bool is_finite_fill(const Value& value, Facts& facts) {
  const auto number = facts.uniform(value);
  return number && *number < -1000 && *number > -1e30;
}

/// Where(m, s, f)  =>  s * m + (1 - m) * f, s being finite
std::vector<Change> factors_and_fills(Spelling& spelling, Random&) {
  Facts& facts = spelling.facts();
  return places_of(spelling, "Where", [&](Node& node, DataType type) -> Change {
    if (!is_unmasked_product(*node.inputs[1], facts) || !is_finite_fill(*node.inputs[2], facts)) return {};
    return [&node, type](Spelling& d) {
      Writer write(d, node);
      const auto& in = node.proto->input();
      const std::string kept = write.cast(in[0], type), left = write.made("Mul", {in[1], kept});
      const std::string dropped = write.made("Sub", {write.number(1, type), kept});
      write.becomes("Add", {left, write.made("Mul", {dropped, in[2]})});
    };
  });
}

/// Where(m, a, b)  =>  Where(m, a, 0) + Where(m, 0, b)
std::vector<Change> sums_of_selections(Spelling& spelling, Random&) {
  return places_of(spelling, "Where", [&](Node& node, DataType type) -> Change {
    return [&node, type](Spelling& d) {
      Writer write(d, node);
      const auto& in = node.proto->input();
      const std::string zero = write.number(0, type);
      const std::string held = write.made("Where", {in[0], in[1], zero}), otherwise = write.made("Where", {in[0], zero, in[2]});
      write.becomes("Add", {otherwise, held});
    };
  });
}

/// Where(m, 0, f)  =>  (1 - m) * f
std::vector<Change> fills_by_factors(Spelling& spelling, Random&) {
  Facts& facts = spelling.facts();
  return places_of(spelling, "Where", [&](Node& node, DataType type) -> Change {
    if (facts.uniform(*node.inputs[1]) != 0.0 || !is_finite_fill(*node.inputs[2], facts)) return {};
    return [&node, type](Spelling& d) {
      Writer write(d, node);
      const auto& in = node.proto->input();
      write.becomes("Mul", {write.made("Sub", {write.number(1, type), write.cast(in[0], type)}), in[2]});
    };
  });
}

/// a + Where(m, 0, f)  =>  Where(m, a, a + f)
std::vector<Change> selections_of_sums(Spelling& spelling, Random&) {
  Facts& facts = spelling.facts();
  return places_of(spelling, "Add", [&](Node& node, DataType) -> Change {
    for (const size_t at : {0, 1}) {
      const Node* where = node.inputs.size() == 2 ? node.inputs[at]->producer : nullptr;
      if (!where || !where->is("Where") || where->graph != node.graph || facts.uniform(*where->inputs[1]) != 0.0) continue;
      if (!facts.uniform(*where->inputs[2])) continue;
      return [&node, where, at](Spelling& d) {
        Writer write(d, node);
        const std::string a = node.proto->input(static_cast<int>(1 - at));
        write.becomes("Where", {where->proto->input(0), a, write.made("Add", {a, where->proto->input(2)})});
      };
    }
    return {};
  });
}

/// a + b  =>  Sum(a, b), or 2 * Mean(a, b), or b - (-a)
std::vector<Change> other_sums(Spelling& spelling, Random& random) {
  const size_t kind = random.below(3);
  constexpr int kFirstSumThatBroadcasts = 8;
  return places_of(spelling, "Add", [&](Node& node, DataType type) -> Change {
    if (spelling.opset(node) < kFirstSumThatBroadcasts) return {};
    return [&node, type, kind](Spelling& d) {
      Writer write(d, node);
      const std::string a = node.proto->input(0), b = node.proto->input(1);
      if (kind == 0) write.becomes("Sum", {a, b});
      if (kind == 1) write.becomes("Mul", {write.made("Mean", {a, b}), write.number(2, type)});
      if (kind == 2) write.becomes("Sub", {b, write.made("Neg", {a})});
    };
  });
}

/// a * c  =>  -(a * -c), or a * c/2 + a * c/2, for a number c
std::vector<Change> other_products(Spelling& spelling, Random& random) {
  const bool halves = random.coin();
  return places_of(spelling, "Mul", [&](Node& node, DataType type) -> Change {
    const auto number = spelling.facts().uniform(*node.inputs[1]);
    const MaybeShape shape = spelling.facts().shape(*node.inputs[1]);
    if (!number || !std::isfinite(*number) || !shape.has_rank(0)) return {};
    return [&node, type, halves, c = *number](Spelling& d) {
      Writer write(d, node);
      const std::string a = node.proto->input(0);
      const std::string part = write.made("Mul", {a, write.number(halves ? c / 2 : -c, type)});
      if (halves)
        write.becomes("Add", {part, write.made("Mul", {a, write.number(c / 2, type)})});
      else
        write.becomes("Neg", {part});
    };
  });
}

}  // namespace

std::vector<Respelling> algebra_respellings() {
  std::vector<Respelling> all = {{"Where as a factor and a fill", factors_and_fills},
                                 {"Where as a sum of two", sums_of_selections},
                                 {"Where as a fill times ones and zeros", fills_by_factors},
                                 {"Add of a Where as a Where of Adds", selections_of_sums},
                                 {"Add as Sum, Mean or Sub", other_sums},
                                 {"Mul by a number in two halves, or negated", other_products}};
  for (Respelling& respelling : all) {
    respelling.keeps_operators = false;
    respelling.is_algebra = true;
  }
  return all;
}

}  // namespace attn_opt
