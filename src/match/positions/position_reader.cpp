#include "src/match/positions/position_reader.h"

#include <algorithm>
#include <cmath>

#include "attn_opt/canonical.h"
#include "src/match/facts/fact_store.h"
#include "src/match/positions/position_constants.h"

namespace attn_opt {
namespace {

constexpr size_t kMaxValues = 256;

std::optional<int64_t> whole(double number) {
  if (!is_integral(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

std::optional<Reading> in_normal_form(Reading reading, const Shape& shape) {
  for_each_form(reading, [&](IndexForm& form) { form = without_single_axes(std::move(form), shape); });
  auto* table = std::get_if<PositionTable>(&reading);
  if (!table) return reading;
  auto positive = with_positive_factors(std::move(*table));
  return positive ? std::optional<Reading>(*std::move(positive)) : std::nullopt;
}

bool is_bool(DataType type) { return type == onnx::TensorProto::BOOL; }

}  // namespace

PositionReader::Found PositionReader::follow(Value* value) {
  if (!value) return std::nullopt;
  Value& seen = canonical(*value, facts_);
  if (const auto found = known_.find(&seen); found != known_.end()) return found->second;
  if (known_.size() >= kMaxValues) return std::nullopt;
  known_[&seen] = std::nullopt;
  Found found = known(seen);
  if (!found && seen.producer && seen.output == 0 && seen.producer->domain().empty()) found = computed(*seen.producer);
  if (!found) found = list_of_lengths(seen);
  const MaybeShape shape = facts_.shape(seen);
  found = found && shape ? in_normal_form(*std::move(found), *shape) : std::nullopt;
  if (const IndexForm* form = found ? std::get_if<IndexForm>(&*found) : nullptr)
    if (!is_held_by(facts_.type(seen), *form, *shape)) found = std::nullopt;
  if (!found && !obstacle_) obstacle_ = &seen;
  known_[&seen] = found;
  return found;
}

PositionReader::Found PositionReader::known_integer(Value& value) {
  if (const IntegerData* data = facts_.integers(value)) {
    const auto& values = data->values;
    const bool same = std::ranges::all_of(values, [&](const Dim& dim) { return dim == values[0]; });
    if (!values.empty() && same && (data->dims.empty() || values[0].from_sizes())) return IndexForm{{}, values[0]};
  }
  const auto number = facts_.uniform(value);
  const auto integer = number ? whole(*number) : std::nullopt;
  return integer ? Found(IndexForm{{}, *integer}) : std::nullopt;
}

PositionReader::Found PositionReader::list_of_lengths(Value& value) {
  const DataType type = facts_.type(value);
  const MaybeShape shape = facts_.shape(value);
  const bool is_list = shape && shape->size() == 1 && !facts_.constant(value);
  if (!is_list || (type != onnx::TensorProto::INT64 && type != onnx::TensorProto::INT32)) return std::nullopt;
  if (!obstacle_) obstacle_ = &value;
  return IndexForm{{}, 0, {&value, 1, 0}};
}

PositionReader::Found PositionReader::known(Value& value) {
  const DataType type = facts_.type(value);
  if (is_integer(type) && !is_bool(type)) {
    if (auto found = known_integer(value)) return found;
  } else if (!is_floating(type) && !is_bool(type)) {
    return std::nullopt;
  } else if (const auto number = facts_.uniform(value)) {
    const PositionTable table = PositionTable::of_number(*number, type);
    return table.values.has_value() ? Found(table) : std::nullopt;
  }
  const Tensor* constant = facts_.constant(value);
  if (!constant) return std::nullopt;
  if (auto steps = even_steps(*constant)) return *steps;
  if (auto steps = diagonal_steps(*constant)) return *steps;
  return std::nullopt;
}

PositionReader::Found PositionReader::computed(Node& node) {
  const std::string& op = node.op();
  if (op == "Range") return range(node);
  if (op == "CumSum") return running_sum(node);
  if (op == "NonZero") return all_places(node);
  if (op == "Cast" || op == "CastLike") return cast(node);
  if (op == "Unsqueeze" || op == "Squeeze" || op == "Reshape" || op == "Flatten") return regrouped(node);
  if (op == "Transpose") return transposed(node);
  if (op == "Expand") return aligned_input(node, 0);
  if (op == "Slice") return slice(node);
  if (op == "Gather") return gather(node);
  if (op == "Trilu") return triangle(node);
  return pointwise(node);
}

std::optional<IndexForm> PositionReader::form(Value* value) {
  const Found found = follow(value);
  if (!found) return std::nullopt;
  if (const auto* form = std::get_if<IndexForm>(&*found)) return *form;
  const auto& table = std::get<PositionTable>(*found);
  const auto number = table.values.cast(onnx::TensorProto::DOUBLE);
  if (!table.conditions.empty() || !number || is_bool(table.values.type())) return std::nullopt;
  const auto integer = whole(number->data<double>()[0]);
  return integer ? std::optional(IndexForm{{}, *integer}) : std::nullopt;
}

std::optional<PositionTable> PositionReader::table(Value* value) {
  const Found found = follow(value);
  if (!found) return std::nullopt;
  if (const auto* table = std::get_if<PositionTable>(&*found)) return *table;
  const auto& form = std::get<IndexForm>(*found);
  if (!form.is_one_number() || !form.offset.is_constant()) return std::nullopt;
  const auto number = PositionTable::of_number(static_cast<double>(form.offset.value()), facts_.type(*value));
  return number.values.has_value() ? std::optional(number) : std::nullopt;
}

PositionReader::Found PositionReader::aligned_input(Node& node, size_t input) {
  Found found = follow(node.input(input));
  if (!found) return std::nullopt;
  const MaybeShape own = facts_.shape(*node.inputs[input]), all = facts_.shape(*node.outputs[0]);
  if (!own || !all) return std::nullopt;
  bool aligned = true;
  for_each_form(*found, [&](const IndexForm& form) {
    for (size_t axis = 0; axis < own->size(); ++axis)
      aligned = aligned && (!form.depends_on(axis) || from_last(*own, axis) == from_last(*all, axis));
  });
  return aligned ? found : std::nullopt;
}

}  // namespace attn_opt
