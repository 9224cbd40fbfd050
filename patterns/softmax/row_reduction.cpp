#include "patterns/softmax/row_reduction.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/internal/mask_contents.h"
#include "attn_opt/operator_traits.h"
#include "patterns/joined_parts.h"
#include "patterns/layout_checks.h"
#include "patterns/scores/conditions.h"
#include "patterns/softmax/row_words.h"
#include "src/match/permutation.h"
#include "src/match/shape_rules/reduced_axis.h"

namespace attn_opt {
namespace {

constexpr int kMaxReductionSteps = 12;
/// An axis of size 1, which lies nowhere.
constexpr int kUnit = -1;

using Placed = RowReduction;

/// False where a declared shape is of another rank than what the nodes make.
bool has_its_rank(const Placed& placed, Facts& facts) {
  const MaybeShape shape = facts.shape(*placed.value);
  return shape && shape->size() == placed.axes.size();
}

bool is_float_cast(const Node& node, Facts& facts) {
  return node.is("Cast") && is_floating(facts.type(*node.inputs[0])) && is_floating(facts.type(*node.outputs[0]));
}

std::optional<Placed> identified(Value& value, Facts& facts) {
  Placed placed{&before_float_casts(value, facts), {}, nullptr};
  const MaybeShape shape = facts.shape(value);
  if (!shape) return std::nullopt;
  placed.axes.resize(shape->size());
  std::iota(placed.axes.begin(), placed.axes.end(), 0);
  for (size_t axis = 0; axis < shape->size(); ++axis)
    if ((*shape)[axis].is(1)) placed.axes[axis] = kUnit;
  return placed;
}

std::optional<Placed> before_transpose(const Node& node, const Placed& after, Facts& facts) {
  const std::vector<int64_t> perm = permutation(node, after.axes.size());
  if (perm.empty()) return std::nullopt;
  Placed before{&canonical(*node.inputs[0], facts), std::vector<int>(after.axes.size()), after.node};
  for (size_t axis = 0; axis < perm.size(); ++axis) before.axes[static_cast<size_t>(perm[axis])] = after.axes[axis];
  return before;
}

/// AFTER is regrouped, or repeated along axes, of which neither moves axes of a size other than 1.
std::optional<Placed> before_same_axes(const Node& node, const Placed& after, Facts& facts) {
  const MaybeShape is = facts.shape(*after.value), was = facts.shape(*node.inputs[0]);
  if (!is || !was) return std::nullopt;
  Placed before{&canonical(*node.inputs[0], facts), std::vector<int>(was->size(), kUnit), after.node};
  const bool expands = node.is("Expand");
  if (expands && was->size() > is->size()) return std::nullopt;
  size_t at = 0;
  for (size_t axis = 0; axis < was->size(); ++axis) {
    if (expands) at = axis + is->size() - was->size();
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

bool is_move(const Node& node) { return node.is("Expand") || has(node, Trait::kKeepsAll); }

/// AFTER, what NODE, a move, makes, before that and perhaps others above it; nullopt if axes cannot be told.
std::optional<Placed> before_move(const Node& node, const Placed& after, Facts& facts) {
  if (node.is("Transpose")) return before_transpose(node, after, facts);
  return node.is("Expand") ? before_same_axes(node, after, facts) : before_regroupings(node, after, facts);
}

/// FOUND as the value that Transposes made it of, and what makes axes of 1.
Placed before_transposes(Placed found, Facts& facts) {
  found.value = &before_float_casts(*found.value, facts);
  for (int step = 0; step < kMaxReductionSteps && found.value->producer; ++step) {
    const Node& node = *found.value->producer;
    const bool is_moved = node.is("Transpose") || has(node, Trait::kRegroups);
    auto before = is_moved && has_its_rank(found, facts) ? before_move(node, found, facts) : std::nullopt;
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

/// REDUCTION of rows of RANK axes where the one taken away is BEFORE_LAST the last; nullopt if that lies elsewhere in them
/// already.
std::optional<Placed> taken_along(const Placed& reduction, size_t rank, size_t before_last) {
  Placed placed = reduction;
  const int axis = static_cast<int>(rank - 1 - before_last);
  if (std::ranges::find(placed.axes, axis) != placed.axes.end()) return std::nullopt;
  std::ranges::replace(placed.axes, RowReduction::kTaken, axis);
  return placed;
}

/// True if REDUCTION takes the axis BEFORE_LAST the last of RANK away from ROWS.
bool is_along(const Placed& reduction, const Placed& rows, size_t rank, size_t before_last, Facts& facts) {
  auto placed = taken_along(reduction, rank, before_last);
  return placed && are_one(before_transposes(*std::move(placed), facts), rows, facts);
}

/// Max(t, x)  =>  t, x being below all scores      Where(t == -inf, x, t)  =>  t, x being a number; null for others. What is
/// made is no less than BOUND.
Value* before_lower_bound(Value& value, double& bound, Facts& facts) {
  const Node& node = *value.producer;
  const double lowest = lowest_finite(facts.type(value)), below_scores = std::max(-1e30, lowest);
  for (const size_t at : {0, 1}) {
    const auto number = node.is("Max") && node.inputs.size() == 2 ? facts.uniform(*node.inputs[at]) : std::nullopt;
    if (!number || *number > below_scores) continue;
    bound = std::max(bound, *number);
    return node.inputs[1 - at];
  }
  if (!node.is("Where")) return nullptr;
  const Condition condition = affirmed({node.inputs[0], true}, facts);
  Value* maximum = node.inputs[condition.is_true ? 2 : 1];
  const bool is_of_infinity =
      either({commuted("Equal", same(&maximum), number_is(-INFINITY)), op("IsInf", {same(&maximum)})})(*condition.value, facts);
  if (!is_of_infinity || !std::isfinite(facts.uniform(*node.inputs[condition.is_true ? 1 : 2]).value_or(INFINITY)))
    return nullptr;
  bound = std::max(bound, lowest);
  return maximum;
}

/// Max(ReduceMax(x cut in front), ReduceMax(x cut behind))  =>  ReduceMax(x)
std::optional<Placed> before_maximum_of_parts(const Node& node, const Placed& after, Facts& facts) {
  for (const RowParts& rows : parts_of_rows(node.inputs, "ReduceMax", after, facts))
    if (Value* joined = cut_into(rows.parts, rows.axis, facts)) return Placed{joined, rows.axes, &node};
  return std::nullopt;
}

/// What the largest of each row is read of, in other words than ReduceMax. ONNX Runtime's MaxPool makes the lowest number of
/// what is all -inf.
std::optional<Placed> before_maximum(const Node& node, const Placed& after, Facts& facts) {
  if (node.is("Max")) return before_maximum_of_parts(node, after, facts);
  if (auto before = before_largest(node, after, facts)) return before;
  auto before = before_pooling("MaxPool", node, after, facts);
  if (before) before->bound = lowest_finite(facts.type(*node.outputs[0]));
  return before;
}

/// reduction_in() of a Reduce*.
///
///   -ReduceMin(-x)  =>  ReduceMax(x)
///
/// Bounds below all scores are left out.
std::optional<Placed> reduced_by(const std::string& op_type, Value& value, size_t rank, Facts& facts) {
  const bool is_maximum = op_type == "ReduceMax";
  bool is_negated = false;
  double bound = -INFINITY;
  const ElementStep next = [&](Value& seen) -> Value* {
    if (is_maximum && !is_negated && seen.producer->is("Neg")) {
      is_negated = true;
      return seen.producer->inputs[0];
    }
    return is_maximum && !is_negated ? before_lower_bound(seen, bound, facts) : nullptr;
  };
  const TakenAxis taken = [&](const Node& node, const Placed& after) -> std::optional<Placed> {
    if (is_maximum && !is_negated && !node.is(op_type)) return before_maximum(node, after, facts);
    if (!node.is(is_negated ? "ReduceMin" : op_type)) return std::nullopt;
    auto before = before_reduction(node, after, facts);
    const Node* negation = before && is_negated ? before->value->producer : nullptr;
    if (is_negated && (!negation || !negation->is("Neg"))) return std::nullopt;
    if (is_negated) before->value = &canonical(*negation->inputs[0], facts);
    return before;
  };
  auto reduction = reduction_in(value, rank, taken, next, facts);
  if (reduction) reduction->bound = std::max(reduction->bound, bound);
  return reduction;
}

}  // namespace

Value& before_float_casts(Value& value, Facts& facts) {
  Value* seen = &canonical(value, facts);
  for (int step = 0; step < kMaxReductionSteps && seen->producer && seen->output == 0 && is_float_cast(*seen->producer, facts);
       ++step)
    seen = &canonical(*seen->producer->inputs[0], facts);
  return *seen;
}

Value& unmoved(Value& value, Facts& facts) {
  Value* seen = &before_float_casts(value, facts);
  for (int step = 0;
       step < kMaxReductionSteps && seen->producer && (has(*seen->producer, Trait::kKeepsAll) || seen->producer->is("Expand"));
       ++step)
    seen = &before_float_casts(*seen->producer->inputs[0], facts);
  return *seen;
}

RowReduction placed_in(Value& value, size_t rank, Facts& facts) {
  Placed placed{&canonical(value, facts), {}, nullptr};
  const MaybeShape shape = facts.shape(value);
  if (!shape || shape->size() > rank) return placed;
  for (size_t axis = 0; axis < shape->size(); ++axis)
    placed.axes.push_back((*shape)[axis].is(1) ? kUnit : static_cast<int>(axis + rank - shape->size()));
  return placed;
}

RowReduction before_moves(RowReduction placed, Facts& facts) {
  for (int step = 0; step < kMaxReductionSteps && has_its_rank(placed, facts); ++step) {
    const Node* node = placed.value->producer;
    auto before = node && node->domain().empty() && is_move(*node) ? before_move(*node, placed, facts) : std::nullopt;
    if (!before) break;
    placed = *std::move(before);
  }
  return placed;
}

std::optional<RowReduction> before_reduction(const Node& node, const RowReduction& after, Facts& facts) {
  const MaybeShape shape = facts.shape(*node.inputs[0]);
  const auto axis = shape ? reduced_axis(node, shape->size(), facts) : std::nullopt;
  if (!axis) return std::nullopt;
  const bool keeps_axis = node.int_attribute("keepdims", 1) != 0;
  if (after.axes.size() + (keeps_axis ? 0 : 1) != shape->size()) return std::nullopt;
  Placed before{&canonical(*node.inputs[0], facts), after.axes, &node};
  const auto at = before.axes.begin() + static_cast<std::ptrdiff_t>(*axis);
  if (keeps_axis)
    *at = RowReduction::kTaken;
  else
    before.axes.insert(at, RowReduction::kTaken);
  return before;
}

std::optional<RowReduction> reduction_in(Value& value, size_t rank, const TakenAxis& taken, const ElementStep& next,
                                         Facts& facts) {
  auto placed = identified(value, facts);
  if (!placed || placed->axes.size() != rank) return std::nullopt;
  for (int step = 0; placed && has_its_rank(*placed, facts) && step < kMaxReductionSteps; ++step) {
    const Node* node = placed->value->producer;
    if (!node || !node->domain().empty() || !node->input(0)) return std::nullopt;
    if (auto before = taken(*node, *placed)) return before;
    if (placed->value->output != 0) return std::nullopt;
    if (is_float_cast(*node, facts)) {
      placed->value = &canonical(*node->inputs[0], facts);
    } else if (is_move(*node)) {
      placed = before_move(*node, *placed, facts);
    } else {
      Value* made_of = next(*placed->value);
      if (!made_of) return std::nullopt;
      placed->value = &canonical(*made_of, facts);
    }
  }
  return std::nullopt;
}

std::optional<size_t> axis_in(const RowReduction& reduction, Value& terms, bool swapped, Facts& facts) {
  auto rows = identified(terms, facts);
  if (!rows || (swapped && rows->axes.size() < 2)) return std::nullopt;
  const size_t rank = rows->axes.size();
  // Seen in the order of the divided value, where the last two have changed places.
  if (swapped)
    for (int& axis : rows->axes)
      if (axis >= static_cast<int>(rank) - 2) axis = 2 * static_cast<int>(rank) - 3 - axis;
  const Placed whole = before_transposes(*std::move(rows), facts);
  for (size_t before_last = 0; before_last < rank; ++before_last) {
    if (is_along(reduction, whole, rank, before_last, facts)) return before_last;
  }
  return std::nullopt;
}

std::optional<size_t> reduced_axis_of(const std::string& op_type, Value& value, Value& terms, Facts& facts) {
  const MaybeShape shape = facts.shape(terms);
  const auto reduction = shape ? reduced_by(op_type, value, shape->size(), facts) : std::nullopt;
  return reduction ? axis_in(*reduction, terms, false, facts) : std::nullopt;
}

double bound_of_maximum(Value& maximum, size_t rank, Facts& facts) {
  const auto reduction = reduced_by("ReduceMax", maximum, rank, facts);
  return reduction ? reduction->bound : -INFINITY;
}

Matcher reduction_of_rows(const std::string& op_type, Value* const* terms, size_t before_last) {
  return [=](Value& value, Facts& facts) {
    auto rows = identified(**terms, facts);
    if (!rows || rows->axes.size() <= before_last) return false;
    const size_t rank = rows->axes.size();
    const auto reduction = reduced_by(op_type, value, rank, facts);
    return reduction && is_along(*reduction, before_transposes(*std::move(rows), facts), rank, before_last, facts);
  };
}

Value* reduced_rows(const std::string& op_type, Value& value, size_t rank, Facts& facts, size_t before_last, bool is_exact) {
  const auto reduction = reduced_by(op_type, value, rank, facts);
  const bool is_wanted = reduction && (!is_exact || reduction->bound == -INFINITY);
  const auto placed = is_wanted ? taken_along(*reduction, rank, before_last) : std::nullopt;
  const auto straight = placed ? identified(*placed->value, facts) : std::nullopt;
  return straight && straight->axes == placed->axes ? placed->value : nullptr;
}

}  // namespace attn_opt
