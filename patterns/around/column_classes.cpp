#include "patterns/around/column_classes.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "src/io/einsum_equation.h"

namespace attn_opt {
namespace {

/// Nodes above a value that are looked through.
constexpr int kMaxClassDepth = 24;

/// Each column of VALUE stands for itself.
std::vector<SignedColumn> all_different(Value& value, size_t count) {
  std::vector<SignedColumn> classes;
  for (size_t index = 0; index < count; ++index) classes.push_back({{&value, index}, 1});
  return classes;
}

/// The columns of VALUE, whose contents are TABLE: the first stands for those that are equal, or its negative.
std::vector<SignedColumn> classes_of_table(Value& value, const Tensor& table, size_t count) {
  const Tensor numbers = table.cast(onnx::TensorProto::DOUBLE).value_or(Tensor());
  if (!numbers.has_value()) return all_different(value, count);
  const auto data = numbers.data<double>();
  if (std::ranges::any_of(data, [](double number) { return std::isnan(number); })) return all_different(value, count);
  std::map<std::vector<double>, Column> first;
  std::vector<SignedColumn> classes;
  for (size_t index = 0; index < count; ++index) {
    std::vector<double> column, negative;
    for (size_t at = index; at < data.size(); at += count) {
      column.push_back(data[at]);
      negative.push_back(-data[at]);
    }
    const auto turned = first.find(negative);
    const bool is_turned = turned != first.end() && !first.contains(column);
    classes.push_back(is_turned ? SignedColumn{turned->second, -1}
                                : SignedColumn{first.emplace(column, Column{&value, index}).first->second, 1});
  }
  return classes;
}

/// The inputs of NODE whose last axis is that of what an Einsum makes; empty if an input has that letter elsewhere too.
std::vector<Value*> last_of_einsum(const Node& node) {
  const EinsumEquation equation = einsum_equation(node.string_attribute("equation", ""));
  if (!equation.result || equation.result->empty() || equation.operands.size() != node.inputs.size()) return {};
  const char last = equation.result->back();
  std::vector<Value*> inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const std::string& letters = equation.operands[i];
    const size_t at = letters.find(last);
    if (at != std::string::npos && at + 1 != letters.size()) return {};
    if (at != std::string::npos) inputs.push_back(node.inputs[i]);
  }
  return inputs;
}

/// True if NODE moves, chooses or joins elements of its inputs along the axes in front of their last AXES alone. Where it may
/// do so along those too, it keeps their sizes no more.
bool keeps_last_axes(const Node& node, size_t axes, Facts& facts) {
  const MaybeShape before = facts.shape(*node.inputs[0]), after = facts.shape(*node.outputs[0]);
  if (!before || !after || before->size() < axes || after->size() < axes) return false;
  const auto lead_before = static_cast<int64_t>(before->size() - axes), rank_before = static_cast<int64_t>(before->size());
  const int64_t axis = node.int_attribute("axis", 0);
  if (node.is("Slice")) return !node.input(4) || facts.uniform(*node.inputs[4]) == 1.0;
  if (node.is("Gather") || node.is("Concat")) return (axis < 0 ? axis + rank_before : axis) < lead_before;
  if (const auto* order = node.is("Transpose") ? node.ints_attribute("perm") : nullptr) {
    for (auto at = lead_before; at < rank_before; ++at)
      if (order->Get(static_cast<int>(at)) != at) return false;
    return true;
  }
  return has(node, Trait::kRegroups) || node.is("Expand");
}

}  // namespace

const std::vector<SignedColumn>& ColumnClasses::of(Value& value, size_t axes) {
  const auto known = known_.find({&value, axes});
  if (known != known_.end()) return known->second;
  ++depth_;
  Classes classes = found(value, axes);
  --depth_;
  return known_[{&value, axes}] = std::move(classes);
}

ColumnClasses::Classes ColumnClasses::found(Value& value, size_t axes) {
  const auto sizes = column_sizes(value, axes, facts_);
  if (!sizes) return {};
  const auto count = static_cast<size_t>(element_count(*sizes));
  if (Value& source = canonical(value, facts_); &source != &value) return of(source, axes);
  if (const Tensor* table = facts_.constant(value)) return classes_of_table(value, *table, count);
  Classes classes;
  if (value.producer && value.producer->domain().empty() && depth_ < kMaxClassDepth) classes = by_producer(value, axes, *sizes);
  return classes.size() == count ? classes : all_different(value, count);
}

ColumnClasses::Classes ColumnClasses::by_producer(Value& value, size_t axes, const Dims& sizes) {
  const Node& node = *value.producer;
  const MaybeShape shape = facts_.shape(value);
  if (node.is("Neg")) {
    Classes classes = of(*node.inputs[0], axes);
    for (SignedColumn& one : classes) one.sign = -one.sign;
    return classes;
  }
  if (shape && shape->size() >= axes) {
    const size_t lead = shape->size() - axes;
    if (const auto columns = moved_columns(value, lead, facts_); !columns.empty()) return moved(columns, *shape, lead);
  }
  const std::vector<Value*> inputs(node.inputs.begin(), node.inputs.end());
  if (has(node, Trait::kElementwise)) return joined(value, inputs, axes, sizes);
  if (node.is("Einsum") && axes == 1) return joined(value, last_of_einsum(node), axes, sizes);
  if (node.is("MatMul") && axes == 1 && !facts_.shape(*node.inputs[1]).has_rank(1))
    return joined(value, {&inputs[1], 1}, axes, sizes);
  if (inputs.empty() || !inputs[0] || !keeps_last_axes(node, axes, facts_)) return {};
  if (!node.is("Expand") && column_sizes(*inputs[0], axes, facts_) != sizes) return {};
  return joined(value, {inputs.data(), node.is("Concat") ? inputs.size() : 1}, axes, sizes);
}

ColumnClasses::Classes ColumnClasses::moved(const std::vector<Column>& columns, const Shape& shape, size_t lead) {
  Classes classes;
  for (const Column& column : columns) {
    const auto axes = axes_behind(*column.value, shape, lead, facts_);
    if (!axes) return {};
    const Classes& sources = of(*column.value, *axes);
    if (column.index >= sources.size()) return {};
    classes.push_back(sources[column.index]);
  }
  return classes;
}

/// The columns of VALUE, each of which follows from the same columns of INPUTS: the first stands for those of equal ones. Signs
/// of what is moved or multiplied are the result's.
ColumnClasses::Classes ColumnClasses::joined(Value& value, std::span<Value* const> inputs, size_t axes, const Dims& sizes) {
  const auto count = static_cast<size_t>(element_count(sizes));
  if (inputs.empty()) return {};
  const Node& node = *value.producer;
  const bool takes_sign =
      has(node, Trait::kMoves) || has(node, Trait::kMultiplies) || (node.is("Cast") && is_floating(facts_.type(value)));
  std::vector<Classes> made_of(count);
  std::vector<int> signs(count, 1);
  for (Value* input : inputs) {
    if (!input) continue;
    const auto own = column_sizes(*input, axes, facts_);
    const Classes& classes = of(*input, axes);
    if (!own || classes.empty()) return {};
    for (size_t axis = 0; axis < axes; ++axis)
      if ((*own)[axis] != 1 && (*own)[axis] != sizes[axis]) return {};
    for (size_t index = 0; index < count; ++index) {
      SignedColumn column = classes[broadcast_column(index, sizes, *own)];
      if (takes_sign) signs[index] *= std::exchange(column.sign, 1);
      made_of[index].push_back(column);
    }
  }
  std::map<Classes, size_t> first;
  Classes classes;
  for (size_t index = 0; index < count; ++index) {
    const size_t same = first.emplace(made_of[index], index).first->second;
    classes.push_back({{&value, same}, signs[index] * signs[same]});
  }
  return classes;
}

}  // namespace attn_opt
