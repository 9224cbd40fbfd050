#include "patterns/inner_values.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "attn_opt/canonical.h"
#include "attn_opt/internal/mask_contents.h"
#include "patterns/layout_checks.h"

namespace attn_opt {
namespace {

/// Values looked at for sizes.
constexpr size_t kMaxHolders = 64;

/// SIZE as an axis of VALUE has it; null if none does.
Value* size_in(Value& value, const Dim& size, InnerValues& inner, Facts& facts) {
  const MaybeShape shape = facts.shape(value);
  const auto axis = shape ? std::ranges::find(*shape, size) - shape->begin() : 0;
  return shape && axis < std::ssize(*shape) ? inner.size(value, axis) : nullptr;
}

}  // namespace

Value* InnerValues::size(Value& value, int64_t axis) {
  const MaybeShape shape = context_.facts.shape(value);
  const bool is_known = shape && (*shape)[static_cast<size_t>(axis)].is_constant();
  return is_known ? build_.ints({(*shape)[static_cast<size_t>(axis)].value()}) : build_.shape(value, axis, axis + 1);
}

Value* InnerValues::size_above(const Dim& size, Value& value) {
  Facts& facts = context_.facts;
  if (size.is_constant()) return build_.ints({size.value()});
  for (Value* input : value.graph->inputs())
    if (Value* found = size_in(*input, size, *this, facts)) return found;
  std::vector<Value*> above{&canonical(value, facts)};
  Value* found = nullptr;
  for (size_t i = 0; i < above.size(); ++i) {
    if (Value* here = size_in(*above[i], size, *this, facts)) found = here;
    if (!above[i]->producer) continue;
    for (Value* input : above[i]->producer->inputs) {
      Value* seen = input ? &canonical(*input, facts) : nullptr;
      if (seen && above.size() < kMaxHolders && std::ranges::find(above, seen) == above.end()) above.push_back(seen);
    }
  }
  return found;
}

Value* InnerValues::scaled(Value* value, double factor) {
  return factor == 1 ? value : build_.scaled(value, factor, context_.facts.type(*value));
}

Value* InnerValues::int64(Value& integers) {
  if (context_.facts.type(integers) == onnx::TensorProto::INT64) return &integers;
  return build_.node("Cast", {&integers}, {GraphBuilder::attribute("to", int64_t{onnx::TensorProto::INT64})});
}

Value* InnerValues::number(int64_t value, DataType type) { return build_.constant(Tensor::scalar<int64_t>(value), type); }

Value* InnerValues::positions(Value* size) {
  Value* end = build_.node("Squeeze", {size});
  return build_.node("Range", {number(0, onnx::TensorProto::INT64), end, number(1, onnx::TensorProto::INT64)});
}

Value* InnerValues::unsqueezed(Value* value, const std::vector<int64_t>& axes) {
  return build_.along("Unsqueeze", *value, axes);
}

Value* InnerValues::raised(Value* value, size_t rank) {
  const size_t own = context_.facts.shape(*value).known().size();
  if (own >= rank) return value;
  std::vector<int64_t> axes(rank - own);
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return unsqueezed(value, axes);
}

Value* InnerValues::reshaped(Value* value, const std::vector<int64_t>& shape) {
  return build_.node("Reshape", {value, build_.ints(shape)});
}

Value* InnerValues::transposed(Value* value, const std::vector<int64_t>& perm) {
  const Untransposed source = untransposed(*value, context_.facts);
  if (source.at.size() != perm.size()) return build_.node("Transpose", {value}, {GraphBuilder::attribute("perm", perm)});
  std::vector<int64_t> joined;
  for (const int64_t axis : perm) joined.push_back(source.at[static_cast<size_t>(axis)]);
  return std::ranges::is_sorted(joined) ? source.value
                                        : build_.node("Transpose", {source.value}, {GraphBuilder::attribute("perm", joined)});
}

Value* InnerValues::swapped(Value* value, size_t rank) {
  std::vector<int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[rank - 2], perm[rank - 1]);
  return transposed(value, perm);
}

Value* InnerValues::shaped(const std::string& op, Value* value, const Shape& shape, Value& whole) {
  const bool is_known = std::ranges::all_of(shape, &Dim::is_constant);
  std::vector<Value*> sizes;
  std::vector<int64_t> numbers;
  for (const Dim& size : shape) {
    if (is_known) numbers.push_back(size.value());
    if (!is_known) sizes.push_back(size_above(size, whole));
    if (!is_known && !sizes.back()) return nullptr;
  }
  return build_.node(op, {value, is_known ? build_.ints(numbers) : concat(sizes, 0)});
}

Value* InnerValues::again(const Node& node, size_t input, Value* value) {
  std::vector<Value*> inputs(node.inputs.begin(), node.inputs.end());
  inputs[input] = value;
  return again(node, inputs);
}

Value* InnerValues::again(const Node& node, const std::string& op, const std::vector<Value*>& inputs) {
  const auto& own = node.proto->attribute();
  GraphBuilder::Attributes attributes(own.begin(), own.end());
  const auto* axes = inputs.size() == 1 ? node.ints_attribute("axes") : nullptr;
  if (!axes) return build_.node(op, inputs, attributes);
  std::erase_if(attributes, [](const onnx::AttributeProto& attribute) { return attribute.name() == "axes"; });
  return build_.along(op, *inputs[0], {axes->begin(), axes->end()}, attributes);
}

Value* InnerValues::slice(Value* value, Value* begin, Value* end, int64_t axis) {
  return build_.node("Slice", {value, begin, end, build_.ints({axis})});
}

Value* InnerValues::concat(const std::vector<Value*>& parts, int64_t axis) {
  return build_.node("Concat", parts, {GraphBuilder::attribute("axis", axis)});
}

std::vector<Value*> InnerValues::split(Value* value, const std::vector<int64_t>& sizes, int64_t axis) {
  const std::vector<bool> wanted(sizes.size(), true);
  const Node* node = build_.new_node("Split", {value, build_.ints(sizes)}, wanted, {GraphBuilder::attribute("axis", axis)});
  return {node->outputs.begin(), node->outputs.end()};
}

Value* InnerValues::additive(Value* keep, double fill, DataType type) {
  const double least = std::isfinite(fill) ? std::max(fill, lowest_finite(type)) : fill;
  return build_.node("Where", {keep, build_.scalar(0, type), build_.scalar(least, type)});
}

}  // namespace attn_opt
