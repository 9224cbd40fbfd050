// Where constants stand, and the shapes of those with one element.
#include <algorithm>
#include <set>

#include "tests/metamorphic/respelling.h"

namespace attn_opt {
namespace {

/// As is ConstantOfShape.
constexpr int kFirstWithConstantsOfAnyType = 9;

/// A place for each input of each node that is a constant for which FIND gives a change.
template <class Find>
std::vector<Change> read_constants(Spelling& spelling, Find find) {
  std::vector<Change> changes;
  for (Node* node : spelling.nodes())
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const Value* value = node->inputs[i];
      const onnx::TensorProto* tensor = value ? Spelling::constant(*value) : nullptr;
      if (!tensor || tensor->data_location() == onnx::TensorProto::EXTERNAL) continue;
      if (Change change = find(*node, static_cast<int>(i), *tensor)) changes.push_back(std::move(change));
    }
  return changes;
}

std::vector<Change> as_constant_nodes(Spelling& spelling, Random&) {
  return read_constants(spelling, [&spelling](Node& node, int input, const onnx::TensorProto& tensor) -> Change {
    if (spelling.opset(node) < kFirstWithConstantsOfAnyType) return {};
    return [&node, input, tensor](Spelling& d) {
      const std::string name = d.fresh("constant");
      d.insert_before(node, constant_node(tensor, name));
      node.proto->set_input(input, name);
    };
  });
}

std::vector<Change> as_initializers(Spelling& spelling, Random&) {
  return read_constants(spelling, [](Node& node, int input, const onnx::TensorProto& tensor) -> Change {
    return [&node, input, tensor](Spelling& d) { node.proto->set_input(input, d.add_constant(node, tensor)); };
  });
}

/// The attribute of Constant that holds TENSOR's contents without a TensorProto; its name is empty if there is none.
onnx::AttributeProto plain_attribute(const onnx::TensorProto& tensor, const TensorStore& store) {
  onnx::AttributeProto attribute;
  const auto data = to_tensor(tensor, store);
  if (!data || data->rank() > 1) return attribute;
  const bool is_list = data->rank() == 1;
  if (data->type() == onnx::TensorProto::FLOAT) {
    attribute.set_name(is_list ? "value_floats" : "value_float");
    attribute.set_type(is_list ? onnx::AttributeProto::FLOATS : onnx::AttributeProto::FLOAT);
    for (const float value : data->data<float>()) is_list ? attribute.add_floats(value) : attribute.set_f(value);
  } else if (data->type() == onnx::TensorProto::INT64) {
    attribute.set_name(is_list ? "value_ints" : "value_int");
    attribute.set_type(is_list ? onnx::AttributeProto::INTS : onnx::AttributeProto::INT);
    for (const int64_t value : data->data<int64_t>()) is_list ? attribute.add_ints(value) : attribute.set_i(value);
  }
  return attribute;
}

std::vector<Change> as_plain_constants(Spelling& spelling, Random&) {
  constexpr int kFirstWithPlainConstants = 12;
  return read_constants(spelling, [&spelling](Node& node, int input, const onnx::TensorProto& tensor) -> Change {
    const auto attribute = plain_attribute(tensor, *spelling.model().tensors);
    if (spelling.opset(node) < kFirstWithPlainConstants || attribute.name().empty()) return {};
    return [&node, input, attribute](Spelling& d) {
      onnx::NodeProto constant = node_of("Constant", {}, d.fresh("constant"));
      *constant.add_attribute() = attribute;
      node.proto->set_input(input, constant.output(0));
      d.insert_before(node, std::move(constant));
    };
  });
}

std::vector<Change> as_constants_of_shape(Spelling& spelling, Random&) {
  return read_constants(spelling, [&spelling](Node& node, int input, const onnx::TensorProto& tensor) -> Change {
    const std::vector<double> numbers = spelling.numbers(*node.inputs[static_cast<size_t>(input)]);
    const bool is_uniform = std::ranges::all_of(numbers, [&](double n) { return n == numbers[0]; });
    const auto type = static_cast<DataType>(tensor.data_type());
    if (spelling.opset(node) < kFirstWithConstantsOfAnyType || numbers.empty() || !is_uniform ||
        type == onnx::TensorProto::BFLOAT16)
      return {};
    const std::vector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
    return [&node, input, dims, fill = filled_tensor(type, {1}, numbers[0])](Spelling& d) {
      onnx::NodeProto filled = node_of("ConstantOfShape", {d.add_constant(node, int64_tensor(dims))}, d.fresh("filled"));
      auto* attribute = filled.add_attribute();
      attribute->set_name("value");
      attribute->set_type(onnx::AttributeProto::TENSOR);
      *attribute->mutable_t() = fill;
      node.proto->set_input(input, filled.output(0));
      d.insert_before(node, std::move(filled));
    };
  });
}

/// The highest rank among the inputs of NODE other than number INPUT; 0 if one is not known.
size_t rank_of_others(Spelling& spelling, const Node& node, int input) {
  size_t highest = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (static_cast<int>(i) == input) continue;
    const MaybeShape shape = node.inputs[i] ? spelling.facts().shape(*node.inputs[i]) : nullptr;
    if (!shape) return 0;
    highest = std::max(highest, shape->size());
  }
  return highest;
}

/// Constants of one element that are broadcast, with another number of axes of 1.
std::vector<Change> of_other_rank(Spelling& spelling, Random& random) {
  static const std::set<std::string> kBroadcasting = {"Add", "Sub", "Mul", "Div",  "Where",   "Max",         "Min",
                                                      "Pow", "And", "Or",  "Less", "Greater", "LessOrEqual", "Equal"};
  constexpr int kFirstThatBroadcasts = 8;
  return read_constants(spelling, [&](Node& node, int input, const onnx::TensorProto& tensor) -> Change {
    const bool has_one = std::ranges::all_of(tensor.dims(), [](int64_t size) { return size == 1; });
    const size_t rank = rank_of_others(spelling, node, input);
    if (!kBroadcasting.contains(node.op()) || !node.domain().empty() || !has_one || rank == 0 ||
        spelling.opset(node) < kFirstThatBroadcasts)
      return {};
    onnx::TensorProto other = tensor;
    other.clear_dims();
    for (size_t axes = random.below(rank + 1); axes > 0; --axes) other.add_dims(1);
    return [&node, input, other](Spelling& d) { node.proto->set_input(input, d.add_constant(node, other)); };
  });
}

}  // namespace

std::vector<Respelling> constant_respellings() {
  return {{"Constant node", as_constant_nodes},
          {"initializer of its own", as_initializers},
          {"Constant with numbers", as_plain_constants},
          {"ConstantOfShape", as_constants_of_shape},
          {"constant with another number of axes", of_other_rank}};
}

}  // namespace attn_opt
