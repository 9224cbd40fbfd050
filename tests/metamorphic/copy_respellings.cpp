// Nodes that change nothing: read by one node in the place of a value, or by all that read it.
#include <algorithm>
#include <climits>
#include <optional>

#include "tests/metamorphic/respelling.h"

namespace attn_opt {
namespace {

constexpr int kFirstWithIntegerConstants = 9;

using Nodes = std::vector<onnx::NodeProto>;
/// The nodes that make TO a copy of FROM.
using Copy = std::function<Nodes(Spelling&, const std::string& from, const std::string& to)>;
/// Nothing if VALUE cannot be copied in this way.
using CopyOf = std::optional<Copy> (*)(Spelling&, const Value& value, int opset, Random&);

size_t rank_of(Spelling& spelling, const Value& value) {
  const MaybeShape shape = spelling.facts().shape(value);
  return shape ? shape->size() : 0;
}

bool is_float(Spelling& spelling, const Value& value) { return is_floating(spelling.facts().type(value)); }

/// OP(from, constants...) with the constants as nodes.
Nodes with_constants(Spelling& spelling, onnx::NodeProto node, const std::vector<onnx::TensorProto>& constants) {
  Nodes nodes;
  for (const auto& tensor : constants) {
    node.add_input(spelling.fresh("argument"));
    nodes.push_back(constant_node(tensor, node.input(node.input_size() - 1)));
  }
  nodes.push_back(std::move(node));
  return nodes;
}

std::optional<Copy> identity(Spelling&, const Value&, int, Random&) {
  return [](Spelling&, const std::string& from, const std::string& to) { return Nodes{node_of("Identity", {from}, to)}; };
}

std::optional<Copy> cast(Spelling& spelling, const Value& value, int opset, Random&) {
  const DataType type = spelling.facts().type(value);
  if (opset < 9 || type == onnx::TensorProto::STRING) return std::nullopt;
  return [type](Spelling&, const std::string& from, const std::string& to) {
    onnx::NodeProto node = node_of("Cast", {from}, to);
    set_attribute(node, "to", type);
    return Nodes{node};
  };
}

std::optional<Copy> concat(Spelling& spelling, const Value& value, int opset, Random& random) {
  const size_t rank = rank_of(spelling, value);
  if (rank == 0 || opset < 4) return std::nullopt;
  const int64_t axis = static_cast<int64_t>(random.below(rank));
  return [axis](Spelling&, const std::string& from, const std::string& to) {
    onnx::NodeProto node = node_of("Concat", {from}, to);
    set_attribute(node, "axis", axis);
    return Nodes{node};
  };
}

std::optional<Copy> slice(Spelling& spelling, const Value& value, int opset, Random& random) {
  const size_t rank = rank_of(spelling, value);
  if (rank == 0 || opset < 10 || spelling.facts().type(value) == onnx::TensorProto::BFLOAT16) return std::nullopt;
  const int64_t axis = static_cast<int64_t>(random.below(rank));
  return [axis](Spelling& d, const std::string& from, const std::string& to) {
    return with_constants(d, node_of("Slice", {from}, to),
                          {int64_tensor({0}), int64_tensor({INT64_MAX}), int64_tensor({axis})});
  };
}

/// False for an input's size that follows from its readers alone: behind a Reshape to it, another would fit as well.
bool is_declared_number(const Value& value, size_t axis) {
  if (!value.is_input || !value.declared_type) return true;
  const auto& declared = value.declared_type->tensor_type().shape();
  return static_cast<int>(axis) < declared.dim_size() && declared.dim(static_cast<int>(axis)).has_dim_value();
}

/// Reshape to zeros, which keep each size, one of them perhaps left to be inferred.
std::optional<Copy> reshape(Spelling& spelling, const Value& value, int opset, Random& random) {
  const MaybeShape shape = spelling.facts().shape(value);
  if (!shape || shape->empty() || opset < kFirstWithIntegerConstants) return std::nullopt;
  std::vector<int64_t> sizes(shape->size(), 0);
  bool may_be_empty = false;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    const Dim& size = (*shape)[axis];
    const bool is_number = size.is_constant() && size.value() > 0 && is_declared_number(value, axis);
    may_be_empty = may_be_empty || !is_number;
    if (is_number && random.coin()) sizes[axis] = size.value();
  }
  if (!may_be_empty && random.coin()) sizes[random.below(sizes.size())] = -1;
  return [sizes](Spelling& d, const std::string& from, const std::string& to) {
    return with_constants(d, node_of("Reshape", {from}, to), {int64_tensor(sizes)});
  };
}

std::optional<Copy> reshape_to_its_shape(Spelling&, const Value&, int opset, Random&) {
  if (opset < 5) return std::nullopt;
  return [](Spelling& d, const std::string& from, const std::string& to) {
    const std::string shape = d.fresh("shape");
    return Nodes{node_of("Shape", {from}, shape), node_of("Reshape", {from, shape}, to)};
  };
}

std::optional<Copy> transposes(Spelling& spelling, const Value& value, int, Random& random) {
  const size_t rank = rank_of(spelling, value);
  if (rank < 2) return std::nullopt;
  std::vector<int64_t> there(rank), back(rank);
  for (size_t i = 0; i < rank; ++i) there[i] = static_cast<int64_t>(i);
  random.shuffle(there);
  for (size_t i = 0; i < rank; ++i) back[static_cast<size_t>(there[i])] = static_cast<int64_t>(i);
  return [there, back](Spelling& d, const std::string& from, const std::string& to) {
    const std::string between = d.fresh("transposed");
    Nodes nodes{node_of("Transpose", {from}, between), node_of("Transpose", {between}, to)};
    set_attribute(nodes[0], "perm", there);
    set_attribute(nodes[1], "perm", back);
    return nodes;
  };
}

/// Unsqueeze and Squeeze of one axis.
std::optional<Copy> unsqueeze_and_squeeze(Spelling& spelling, const Value& value, int opset, Random& random) {
  const MaybeShape shape = spelling.facts().shape(value);
  if (!shape || opset < 13) return std::nullopt;
  const int64_t axis = static_cast<int64_t>(random.below(shape->size() + 1));
  return [axis](Spelling& d, const std::string& from, const std::string& to) {
    const std::string between = d.fresh("unsqueezed");
    Nodes nodes = with_constants(d, node_of("Unsqueeze", {from}, between), {int64_tensor({axis})});
    const Nodes back = with_constants(d, node_of("Squeeze", {between}, to), {int64_tensor({axis})});
    nodes.insert(nodes.end(), back.begin(), back.end());
    return nodes;
  };
}

std::optional<Copy> expand(Spelling& spelling, const Value& value, int opset, Random& random) {
  const size_t rank = rank_of(spelling, value);
  if (rank == 0 || opset < kFirstWithIntegerConstants) return std::nullopt;
  const size_t ones = 1 + random.below(rank);
  return [ones](Spelling& d, const std::string& from, const std::string& to) {
    return with_constants(d, node_of("Expand", {from}, to), {int64_tensor(std::vector<int64_t>(ones, 1))});
  };
}

std::optional<Copy> dropout(Spelling& spelling, const Value& value, int opset, Random&) {
  if (opset < 7 || !is_float(spelling, value) || spelling.facts().type(value) == onnx::TensorProto::BFLOAT16)
    return std::nullopt;
  return [](Spelling&, const std::string& from, const std::string& to) { return Nodes{node_of("Dropout", {from}, to)}; };
}

std::optional<Copy> with_number(Spelling& spelling, const Value& value, int opset, const std::string& op, double number) {
  const DataType type = spelling.facts().type(value);
  if (opset < 7 || !is_float(spelling, value) || type == onnx::TensorProto::BFLOAT16) return std::nullopt;
  return [=](Spelling& d, const std::string& from, const std::string& to) {
    return with_constants(d, node_of(op, {from}, to), {filled_tensor(type, {}, number)});
  };
}

std::optional<Copy> times_one(Spelling& spelling, const Value& value, int opset, Random& random) {
  return with_number(spelling, value, opset, random.coin() ? "Mul" : "Div", 1);
}

std::optional<Copy> plus_zero(Spelling& spelling, const Value& value, int opset, Random& random) {
  return with_number(spelling, value, opset, random.coin() ? "Add" : "Sub", 0);
}

std::optional<Copy> cast_there_and_back(Spelling& spelling, const Value& value, int opset, Random&) {
  const DataType type = spelling.facts().type(value);
  if (opset < 9 || type != onnx::TensorProto::BOOL) return std::nullopt;
  return [type](Spelling& d, const std::string& from, const std::string& to) {
    const std::string between = d.fresh("cast");
    Nodes nodes{node_of("Cast", {from}, between), node_of("Cast", {between}, to)};
    set_attribute(nodes[0], "to", onnx::TensorProto::INT64);
    set_attribute(nodes[1], "to", type);
    return nodes;
  };
}

/// A copy of what NODE reads as its input number INPUT, for it alone.
Change copy_for_one(Node& node, int input, const Copy& copy) {
  return [&node, input, copy](Spelling& spelling) {
    const std::string to = spelling.fresh("copy");
    for (auto& made : copy(spelling, node.inputs[static_cast<size_t>(input)]->name, to))
      spelling.insert_before(node, std::move(made));
    node.proto->set_input(input, to);
  };
}

/// A copy of the output number OUTPUT of NODE, for all its readers.
Change copy_for_all(Node& node, int output, const Copy& copy) {
  return [&node, output, copy](Spelling& spelling) {
    const std::string to = node.proto->output(output);
    const std::string from = spelling.fresh("copied");
    node.proto->set_output(output, from);
    Nodes made = copy(spelling, from, to);
    for (auto it = made.rbegin(); it != made.rend(); ++it) spelling.insert_after(node, std::move(*it));
  };
}

std::vector<Change> copies(Spelling& spelling, Random& random, CopyOf copy_of) {
  std::vector<Change> changes;
  const auto legal = [&](const Node& node, const Value* value) -> std::optional<Copy> {
    if (!value || spelling.facts().type(*value) == onnx::TensorProto::UNDEFINED) return std::nullopt;
    return copy_of(spelling, *value, spelling.opset(node), random);
  };
  for (Node* node : spelling.nodes()) {
    for (size_t i = 0; i < node->inputs.size(); ++i)
      if (const auto copy = legal(*node, node->inputs[i])) changes.push_back(copy_for_one(*node, static_cast<int>(i), *copy));
    for (size_t i = 0; i < node->outputs.size(); ++i)
      // A copy that nothing reads would read what was not read.
      if (const auto copy = legal(*node, node->outputs[i]); copy && !node->outputs[i]->unused())
        changes.push_back(copy_for_all(*node, static_cast<int>(i), *copy));
  }
  return changes;
}

Respelling copying(const std::string& name, CopyOf copy_of) {
  return {name, [copy_of](Spelling& spelling, Random& random) { return copies(spelling, random, copy_of); }};
}

}  // namespace

std::vector<Respelling> copy_respellings() {
  return {copying("Identity", identity),
          copying("Cast to the same type", cast),
          copying("Cast to int64 and back", cast_there_and_back),
          copying("Concat of one", concat),
          copying("Slice of everything", slice),
          copying("Reshape to the same shape", reshape),
          copying("Reshape to its own Shape", reshape_to_its_shape),
          copying("Transpose there and back", transposes),
          copying("Unsqueeze and Squeeze", unsqueeze_and_squeeze),
          copying("Expand by ones", expand),
          copying("Dropout at inference", dropout),
          copying("Mul or Div by 1", times_one),
          copying("Add or Sub of 0", plus_zero)};
}

}  // namespace attn_opt
