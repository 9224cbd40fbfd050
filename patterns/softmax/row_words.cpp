#include "patterns/softmax/row_words.h"

#include <algorithm>
#include <string>

#include "attn_opt/canonical.h"
#include "patterns/layout_checks.h"
#include "patterns/products/product_letters.h"
#include "src/match/cut_range.h"
#include "src/match/node_forms.h"

namespace attn_opt {
namespace {

/// AFTER, of as many axes as VALUE, as VALUE of which AXIS is taken away; nullopt if it has others.
std::optional<RowReduction> taken_from(Value& value, size_t axis, const RowReduction& after, const Node* node, Facts& facts) {
  const MaybeShape shape = facts.shape(value);
  if (!shape || shape->size() != after.axes.size() || axis >= shape->size()) return std::nullopt;
  RowReduction before{&canonical(value, facts), after.axes, node};
  before.axes[axis] = RowReduction::kTaken;
  return before;
}

bool are_all(const Node& node, const char* attribute, int64_t number) {
  const auto* numbers = node.ints_attribute(attribute);
  return !numbers || std::ranges::all_of(*numbers, [number](int64_t each) { return each == number; });
}

/// The only axis of SHAPE that KERNEL, of its last axes, is longer than 1 along, and covers whole; nullopt if there is none.
std::optional<size_t> covered_axis(const Shape& shape, const google::protobuf::RepeatedField<int64_t>& kernel) {
  const size_t first = shape.size() - static_cast<size_t>(kernel.size());
  std::optional<size_t> found;
  for (int i = 0; i < kernel.size(); ++i) {
    if (kernel[i] == 1) continue;
    const size_t axis = first + static_cast<size_t>(i);
    if (found || !shape[axis].is(kernel[i])) return std::nullopt;
    found = axis;
  }
  return found;
}

bool is_column(const Value& value, size_t axis, const RowReduction& after, Facts& facts) {
  const MaybeShape shape = facts.shape(value);
  return shape && shape->size() == after.axes.size() && (*shape)[axis].is(1);
}

/// A power of a size of the model.
struct SizePower {
  Dim size = 1;
  double power = 1;
};

/// The one that VALUE, a floating number that each run computes, holds; nullopt if it holds none.
std::optional<SizePower> size_held(Value& value, Facts& facts) {
  const Node* node = unmoved(value, facts).producer;
  double power = 1;
  if (node && (node->is("Reciprocal") || node->is("Pow"))) {
    power = node->is("Pow") ? facts.uniform(*node->inputs[1]).value_or(0) : -1;
    node = unmoved(*node->inputs[0], facts).producer;
  } else if (node && node->is("Div") && facts.uniform(*node->inputs[0]) == 1.0) {
    power = -1;
    node = unmoved(*node->inputs[1], facts).producer;
  }
  const IntegerData* held = node && node->is("Cast") ? facts.integers(*node->inputs[0]) : nullptr;
  if (!held || held->values.size() != 1 || held->values[0].is_constant() || power == 0) return std::nullopt;
  return SizePower{held->values[0], power};
}

}  // namespace

Value* SizeFactor::take_from(const Node& node, double& power, Facts& facts) {
  const bool divides = node.is("Div");
  if (!divides && !node.is("Mul")) return nullptr;
  for (const size_t at : {0, 1}) {
    const auto held = size_held(*node.inputs[at], facts);
    const MaybeShape left = facts.shape(*node.inputs[1 - at]), whole = facts.shape(*node.outputs[0]);
    if (!held || !left || !whole || *left != *whole) continue;
    if (!multiply(held->size, held->power * (divides && at == 1 ? -power : power), facts)) return nullptr;
    if (divides && at == 0) power = -power;
    return node.inputs[1 - at];
  }
  return nullptr;
}

bool SizeFactor::multiply(const Dim& size, double power, const Facts& facts) {
  if (power_ != 0 && !is_taken_for(size, size_, facts)) return false;
  size_ = size;
  power_ += power;
  return true;
}

std::optional<RowReduction> before_pooling(const char* op_type, const Node& node, const RowReduction& after, Facts& facts) {
  if (!node.is(op_type) || after.value->output != 0) return std::nullopt;
  const MaybeShape shape = facts.shape(*node.inputs[0]), made = facts.shape(*node.outputs[0]);
  const auto* kernel = node.ints_attribute("kernel_shape");
  const std::string padding = node.string_attribute("auto_pad", "NOTSET");
  const bool is_plain =
      (padding == "NOTSET" || padding == "VALID") && are_all(node, "pads", 0) && are_all(node, "dilations", 1);
  if (!shape || !made || !kernel || !is_plain || static_cast<size_t>(kernel->size()) >= shape->size()) return std::nullopt;
  const auto axis = covered_axis(*shape, *kernel);
  Shape reduced = *shape;
  if (axis) reduced[*axis] = 1;
  return axis && reduced == *made ? taken_from(*node.inputs[0], *axis, after, &node, facts) : std::nullopt;
}

std::optional<RowReduction> before_largest(const Node& node, const RowReduction& after, Facts& facts) {
  if (!node.is("TopK") || after.value->output != 0 || node.int_attribute("largest", 1) != 1 || !node.input(1))
    return std::nullopt;
  const IntegerData* count = facts.integers(*node.inputs[1]);
  const auto axis = axis_in(node.int_attribute("axis", -1), after.axes.size());
  const bool takes_one = count && count->values.size() == 1 && count->values[0].is(1);
  return takes_one && axis ? taken_from(*node.inputs[0], *axis, after, &node, facts) : std::nullopt;
}

std::optional<RowReduction> before_product(const Node& product, size_t at, const RowReduction& after, Facts& facts) {
  const auto letters = product_letters(product, facts);
  Value& operand = *operands_of(product, facts)[at];
  const MaybeShape made = facts.shape(*product.outputs[0]), shape = facts.shape(operand);
  if (!letters || !made || !shape || letters->result.size() != after.axes.size()) return std::nullopt;
  const std::string& own = letters->operands[at];
  for (const std::string& ones : letters->operands)
    for (const char letter : ones)
      if (!has_letter(own, letter) && !has_letter(letters->result, letter)) return std::nullopt;  // it counts as often
  RowReduction before{&canonical(operand, facts), {}, &product};
  for (size_t axis = 0; axis < own.size(); ++axis) {
    if (own[axis] == kUnitAxis) {
      before.axes.push_back(-1);
      continue;
    }
    const size_t place = letters->result.find(own[axis]);
    const bool is_summed = place == std::string::npos;
    // Ones may repeat it along leading axes.
    if (std::ranges::count(own, own[axis]) != 1 || (!is_summed && (*made)[place] != (*shape)[axis])) return std::nullopt;
    before.axes.push_back(is_summed ? RowReduction::kTaken : after.axes[place]);
  }
  if (std::ranges::count(before.axes, RowReduction::kTaken) != 1) return std::nullopt;
  return has_letter(own, kUnitAxis) ? before_moves(std::move(before), facts) : before;
}

std::optional<RowReduction> before_running_sum(const RowReduction& after, Facts& facts) {
  const auto last = cut_range(*after.value, facts);
  const Node* sums = last && last->count.is(1) ? canonical(*last->source, facts).producer : nullptr;
  if (!sums || !sums->is("CumSum") || !sums->input(1) || sums->int_attribute("exclusive", 0) != 0) return std::nullopt;
  const MaybeShape shape = facts.shape(*sums->inputs[0]);
  const auto along = facts.uniform(*sums->inputs[1]);
  const auto axis = shape && along ? axis_in(static_cast<int64_t>(*along), shape->size()) : std::nullopt;
  if (axis != last->axis) return std::nullopt;
  const bool is_whole = sums->int_attribute("reverse", 0) != 0 ? last->first.is(0) : last->first + 1 == (*shape)[*axis];
  return is_whole ? taken_from(*sums->inputs[0], *axis, after, sums, facts) : std::nullopt;
}

std::vector<RowParts> parts_of_rows(std::span<Value* const> reduced, const char* op_type, const RowReduction& after,
                                    Facts& facts) {
  std::vector<RowParts> found;
  std::optional<RowReduction> whole;
  std::vector<Value*> parts;
  for (Value* value : reduced) {
    const Node* node = canonical(*value, facts).producer;
    const auto before = node && node->is(op_type) ? before_reduction(*node, after, facts) : std::nullopt;
    if (before && whole && whole->axes != before->axes) return found;
    if (before) whole = before;
    parts.push_back(before ? before->value : value);
  }
  const auto are_columns = [&](size_t axis) {
    for (size_t i = 0; i < parts.size(); ++i)
      if (parts[i] == reduced[i] && !is_column(*parts[i], axis, after, facts)) return false;
    return true;
  };
  if (whole) {
    const auto axis = static_cast<size_t>(std::ranges::find(whole->axes, RowReduction::kTaken) - whole->axes.begin());
    const bool keeps_axis = whole->axes.size() == after.axes.size();
    const bool has_columns = !std::ranges::equal(parts, reduced, [](Value* one, Value* other) { return one != other; });
    if (!has_columns || (keeps_axis && are_columns(axis))) found.push_back({std::move(parts), axis, whole->axes});
    return found;
  }
  for (size_t axis = after.axes.size(); axis-- > 0;) {
    if (!are_columns(axis)) continue;
    found.push_back({parts, axis, after.axes});
    found.back().axes[axis] = RowReduction::kTaken;
  }
  return found;
}

}  // namespace attn_opt
