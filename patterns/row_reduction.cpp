#include "patterns/row_reduction.h"

#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/layout_checks.h"
#include "src/match/reduced_axis.h"

namespace attn_opt {
namespace {

constexpr int kMaxSteps = 12;
/// An axis of size 1, which lies nowhere.
constexpr int kUnit = -1;

/// A value and which axis of the rows each of its axes is.
struct Placed {
  Value* value = nullptr;
  std::vector<int> axes;
};

/// False where a declared shape is of another rank than what the nodes make.
bool has_its_rank(const Placed& placed, Facts& facts) {
  const MaybeShape shape = facts.shape(*placed.value);
  return shape && shape->size() == placed.axes.size();
}

bool is_float_cast(const Node& node, Facts& facts) {
  return node.is("Cast") && is_floating(facts.type(*node.inputs[0])) && is_floating(facts.type(*node.outputs[0]));
}

std::optional<Placed> identified(Value& value, Facts& facts) {
  Placed placed{&before_float_casts(value, facts), {}};
  const MaybeShape shape = facts.shape(value);
  if (!shape) return std::nullopt;
  placed.axes.resize(shape->size());
  std::iota(placed.axes.begin(), placed.axes.end(), 0);
  for (size_t axis = 0; axis < shape->size(); ++axis)
    if ((*shape)[axis].is(1)) placed.axes[axis] = kUnit;
  return placed;
}

std::optional<Placed> before_transpose(const Node& node, const Placed& after, Facts& facts) {
  const auto* perm = node.ints_attribute("perm");
  if (!perm || static_cast<size_t>(perm->size()) != after.axes.size()) return std::nullopt;
  Placed before{&canonical(*node.inputs[0], facts), std::vector<int>(after.axes.size())};
  for (int axis = 0; axis < perm->size(); ++axis) before.axes[static_cast<size_t>(perm->Get(axis))] = after.axes[static_cast<size_t>(axis)];
  return before;
}

/// AFTER is regrouped, or repeated along axes, of which neither moves axes of a size other than 1.
std::optional<Placed> before_same_axes(const Node& node, const Placed& after, Facts& facts) {
  const MaybeShape is = facts.shape(*after.value), was = facts.shape(*node.inputs[0]);
  if (!is || !was) return std::nullopt;
  Placed before{&canonical(*node.inputs[0], facts), std::vector<int>(was->size(), kUnit)};
  const bool expands = node.is("Expand");
  if (expands && was->size() != is->size()) return std::nullopt;
  size_t at = 0;
  for (size_t axis = 0; axis < was->size(); ++axis) {
    if (expands) at = axis;
    if ((*was)[axis].is(1)) continue;
    while (!expands && at < is->size() && (*is)[at].is(1)) ++at;
    if (at == is->size() || (*is)[at] != (*was)[axis]) return std::nullopt;
    before.axes[axis] = after.axes[at++];
  }
  while (!expands && at < is->size() && (*is)[at].is(1)) ++at;
  return expands || at == is->size() ? std::optional(before) : std::nullopt;
}

/// AFTER, what NODE and other regroupings above it make, before those that together move no axes of a size other than 1.
std::optional<Placed> before_regroupings(const Node& node, const Placed& after, Facts& facts) {
  const Node* next = &node;
  for (int step = 0; next && has(*next, Trait::kRegroups) && step < kMaxTogether; ++step) {
    if (auto before = before_same_axes(*next, after, facts)) return before;
    next = canonical(*next->inputs[0], facts).producer;
  }
  return std::nullopt;
}

std::optional<Placed> before_reduction(const Node& node, const Placed& after, int row_axis, Facts& facts) {
  const MaybeShape shape = facts.shape(*node.inputs[0]);
  const auto axis = shape ? reduced_axis(node, shape->size(), facts) : std::nullopt;
  if (!axis) return std::nullopt;
  const bool keeps_axis = node.int_attribute("keepdims", 1) != 0;
  if (after.axes.size() + (keeps_axis ? 0 : 1) != shape->size()) return std::nullopt;
  Placed before{&canonical(*node.inputs[0], facts), after.axes};
  const auto at = before.axes.begin() + static_cast<std::ptrdiff_t>(*axis);
  if (keeps_axis) *at = row_axis;
  else before.axes.insert(at, row_axis);
  return before;
}

/// The operand of NODE, a Max, beside -inf; null if it has another.
Value* above_minus_inf(const Node& node, Facts& facts) {
  for (const size_t at : {0, 1})
    if (node.inputs.size() == 2 && facts.uniform(*node.inputs[at]) == -INFINITY) return node.inputs[1 - at];
  return nullptr;
}

/// FOUND as the value that Transposes made it of.
Placed untransposed(Placed found, Facts& facts) {
  found.value = &before_float_casts(*found.value, facts);
  for (int step = 0; step < kMaxSteps && found.value->producer && found.value->producer->is("Transpose"); ++step) {
    auto before = before_transpose(*found.value->producer, found, facts);
    if (!before) break;
    found = *std::move(before);
    found.value = &before_float_casts(*found.value, facts);
  }
  return found;
}

bool are_one(const Placed& one, const Placed& other, Facts& facts) {
  if (one.value != other.value || !has_its_rank(one, facts) || !has_its_rank(other, facts)) return false;
  const Shape& shape = facts.shape(*one.value).known();
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (!shape[axis].is(1) && one.axes[axis] != other.axes[axis]) return false;
  return true;
}

/// The rows that VALUE holds a number of OP_TYPE for, and where their axes lie among RANK.
std::optional<Placed> reduced_from(const std::string& op_type, Value& value, size_t rank, const Node** reduces, Facts& facts,
                                   size_t before_last = 0) {
  auto placed = identified(value, facts);
  const int row_axis = static_cast<int>(rank - 1 - before_last);
  if (!placed || placed->axes.size() != rank) return std::nullopt;
  for (int step = 0; placed && has_its_rank(*placed, facts) && step < kMaxSteps; ++step) {
    const Node* node = placed->value->producer;
    if (!node || placed->value->output != 0 || !node->domain().empty() || !node->input(0)) return std::nullopt;
    if (node->is(op_type)) {
      if (reduces) *reduces = node;
      return before_reduction(*node, *placed, row_axis, facts);
    }
    if (is_float_cast(*node, facts)) {
      placed->value = &canonical(*node->inputs[0], facts);
    } else if (node->is("Transpose")) {
      placed = before_transpose(*node, *placed, facts);
    } else if (node->is("Max") && op_type == "ReduceMax") {
      Value* above = above_minus_inf(*node, facts);
      if (!above) return std::nullopt;
      placed->value = &canonical(*above, facts);
    } else if (has(*node, Trait::kRegroups)) {
      placed = before_regroupings(*node, *placed, facts);
    } else if (node->is("Expand")) {
      placed = before_same_axes(*node, *placed, facts);
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

Value& before_float_casts(Value& value, Facts& facts) {
  Value* seen = &canonical(value, facts);
  for (int step = 0; step < kMaxSteps && seen->producer && seen->output == 0 && is_float_cast(*seen->producer, facts); ++step)
    seen = &canonical(*seen->producer->inputs[0], facts);
  return *seen;
}

Matcher reduction_of_rows(std::string op_type, Value* const* terms, const Node** reduces, size_t before_last) {
  return [=](Value& value, Facts& facts) {
    const auto rows = identified(**terms, facts);
    if (!rows || rows->axes.size() <= before_last) return false;
    auto placed = reduced_from(op_type, value, rows->axes.size(), reduces, facts, before_last);
    return placed && are_one(untransposed(*std::move(placed), facts), untransposed(*rows, facts), facts);
  };
}

Value* reduced_rows(const std::string& op_type, Value& value, size_t rank, Facts& facts, size_t before_last) {
  const auto placed = reduced_from(op_type, value, rank, nullptr, facts, before_last);
  const auto straight = placed ? identified(*placed->value, facts) : std::nullopt;
  return straight && straight->axes == placed->axes ? placed->value : nullptr;
}

}  // namespace attn_opt
