#include "src/match/cut_range.h"

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "src/match/node_forms.h"

namespace attn_opt {
namespace {

const IntegerData* list_at(const Node& node, int input, Facts& facts) {
  return node.input(input) ? facts.integers(*node.inputs[static_cast<size_t>(input)]) : nullptr;
}

/// The only axis along which WHOLE and PART differ in size; nullopt if there is not one alone.
std::optional<size_t> axis_cut(const Shape& whole, const Shape& part) {
  std::optional<size_t> found;
  if (whole.size() != part.size()) return std::nullopt;
  for (size_t axis = 0; axis < whole.size(); ++axis) {
    if (whole[axis] == part[axis]) continue;
    if (found) return std::nullopt;
    found = axis;
  }
  return found;
}

/// Where a Slice begins that says START and takes COUNT of SIZE elements: in the axis, or at its ends. What is not known to be
/// a number of elements, or is all that START counts from the end, is taken for such a number where it begins in the axis.
Dim start_within(const Dim& start, const Dim& count, const Dim& size) {
  const bool counts_from_end = start.is_constant() && start.value() < 0;
  if (counts_from_end) return count == Dim(0) - start ? start + size : maximum(start + size, 0);
  return count.never_negative() ? minimum(start, size) : start;
}

/// Where SLICE, which takes COUNT along AXIS of WHOLE, begins there, if it runs by ones along all axes.
std::optional<Dim> start_of_slice(const Node& slice, const Shape& whole, size_t axis, const Dim& count, Facts& facts) {
  const std::vector<Dim> starts = dims_given(slice, "starts", 1, facts), axes = dims_given(slice, "axes", 3, facts);
  const bool says_axes = slice.input(3) || slice.attribute("axes");
  if (says_axes && axes.size() != starts.size()) return std::nullopt;
  if (slice.input(4) && facts.uniform(*slice.inputs[4]) != 1.0) return std::nullopt;
  for (size_t i = 0; i < starts.size(); ++i) {
    const Dim at = says_axes ? axes[i] : Dim(static_cast<int64_t>(i));
    if (!at.is_constant() || axis_in(at.value(), whole.size()) != axis) continue;
    return start_within(starts[i], count, whole[axis]);
  }
  return std::nullopt;
}

/// Where RANGE begins, if it counts by ones.
std::optional<Dim> start_of_range(const Node& range, Facts& facts) {
  const IntegerData *start = list_at(range, 0, facts), *step = list_at(range, 2, facts);
  const bool counts = start && step && start->values.size() == 1 && step->values.size() == 1 && step->values[0].is(1);
  return counts ? std::optional(start->values[0]) : std::nullopt;
}

/// The first of INDICES, if each of the others is one more than that before it.
std::optional<Dim> start_of_sequence(Value& indices, Facts& facts) {
  const Node* range = canonical(indices, facts).producer;
  if (range && range->is("Range")) return start_of_range(*range, facts);
  const IntegerData* list = facts.integers(indices);
  if (!list || list->values.empty()) return std::nullopt;
  for (size_t i = 0; i < list->values.size(); ++i)
    if (list->values[i] != list->values[0] + static_cast<int64_t>(i)) return std::nullopt;
  return list->values[0];
}

/// Where GATHER begins, if it takes one element after the other.
std::optional<Dim> start_of_gather(const Node& gather, Facts& facts) {
  const auto first = gather.input(1) ? start_of_sequence(*gather.inputs[1], facts) : std::nullopt;
  const bool counts_from_end = first && first->is_constant() && first->value() < 0;
  return counts_from_end ? std::nullopt : first;
}

/// How many elements along AXIS the outputs of SPLIT before PART have.
std::optional<Dim> start_in_split(const Node& split, size_t axis, const Value& part, Facts& facts) {
  Dim first = 0;
  for (const Value* output : split.outputs) {
    if (output == &part) return first;
    const MaybeShape shape = output ? facts.shape(*output) : nullptr;
    if (!shape || shape->size() <= axis) return std::nullopt;
    first = first + (*shape)[axis];
  }
  return std::nullopt;
}

/// Where PART, which NODE cuts out of WHOLE, begins along AXIS, in which they differ.
std::optional<Dim> start_along(const Node& node, const Shape& whole, size_t axis, const Value& part, Facts& facts) {
  if (node.is("Slice")) return start_of_slice(node, whole, axis, facts.shape(part).known()[axis], facts);
  if (axis_in(node.int_attribute("axis", 0), whole.size()) != axis) return std::nullopt;
  return node.is("Split") ? start_in_split(node, axis, part, facts) : start_of_gather(node, facts);
}

/// True if PART, which CUT makes, begins along each axis behind as many elements as PAD, of WHOLE, adds there.
bool begins_behind_pads(const Node& cut, const Node& pad, const Shape& whole, const Value& part, Facts& facts) {
  const IntegerData* pads = pad.input(3) ? nullptr : list_at(pad, 1, facts);
  const MaybeShape own = facts.shape(part);
  if (!pads || !own.has_rank(whole.size()) || pads->values.size() != 2 * whole.size()) return false;
  for (size_t axis = 0; axis < whole.size(); ++axis) {
    const auto start = (*own)[axis] == whole[axis] ? Dim(0) : start_along(cut, whole, axis, part, facts);
    if (start != pads->values[axis]) return false;
  }
  return true;
}

/// The operand of CONCAT that RANGE of its result is.
Value* joined_at(const CutRange& range, const Node& concat, Facts& facts) {
  Dim first = 0;
  for (Value* input : concat.inputs) {
    const MaybeShape shape = input ? facts.shape(*input) : nullptr;
    if (!shape || shape->size() <= range.axis) return nullptr;
    if (first == range.first && (*shape)[range.axis] == range.count) return input;
    first = first + (*shape)[range.axis];
  }
  return nullptr;
}

/// The operand of TILE, if RANGE of the result, of SHAPE, is one of its copies.
Value* repeated_at(const CutRange& range, const Shape& shape, const Node& tile, Facts& facts) {
  const MaybeShape before = facts.shape(*tile.inputs[0]);
  if (!before || *before != shape || !range.first.is_constant()) return nullptr;
  return exact_quotient(range.first, shape[range.axis]) ? tile.inputs[0] : nullptr;
}

/// The axis that NODE, a Gather of one element, drops; nullopt if it is anything else.
std::optional<size_t> dropped_axis(const Node& node, Facts& facts) {
  const MaybeShape whole = node.is("Gather") && node.input(0) ? facts.shape(*node.inputs[0]) : nullptr;
  if (!whole || !facts.shape(*node.inputs[1]).has_rank(0)) return std::nullopt;
  return axis_in(node.int_attribute("axis", 0), whole->size());
}

}  // namespace

bool cuts_out(const Node& node) { return node.is("Slice") || node.is("Split") || node.is("Gather"); }

std::optional<CutRange> cut_range(const Value& part, Facts& facts) {
  const Node* node = part.producer;
  if (!node || !cuts_out(*node) || !node->input(0)) return std::nullopt;
  const MaybeShape whole = facts.shape(*node->inputs[0]), own = facts.shape(part);
  const auto axis = whole && own ? axis_cut(*whole, *own) : std::nullopt;
  const auto first = axis ? start_along(*node, *whole, *axis, part, facts) : std::nullopt;
  return first ? std::optional(CutRange{node->inputs[0], *axis, *first, (*own)[*axis]}) : std::nullopt;
}

Value* cut_back(const Value& part, const std::function<Value&(Value&)>& seen, Facts& facts) {
  const Node* cut = part.producer;
  if (!cut || !cuts_out(*cut) || !cut->input(0)) return nullptr;
  Value& whole = seen(*cut->inputs[0]);
  const MaybeShape shape = facts.shape(whole);
  const Node* node = whole.producer;
  if (!shape || !node || whole.output != 0 || !node->input(0)) return nullptr;
  if (node->is("Pad") && node->graph->model().onnx_opset(*node) >= 11) {
    const MaybeShape before = facts.shape(*node->inputs[0]), own = facts.shape(part);
    const bool is_all = before && own && *before == *own && begins_behind_pads(*cut, *node, *shape, part, facts);
    return is_all ? node->inputs[0] : nullptr;
  }
  const auto range = node->is("Concat") || node->is("Tile") ? cut_range(part, facts) : std::nullopt;
  if (range && node->is("Tile")) return repeated_at(*range, facts.shape(part).known(), *node, facts);
  const bool is_along = range && axis_in(node->int_attribute("axis", 0), shape->size()) == range->axis;
  return is_along ? joined_at(*range, *node, facts) : nullptr;
}

bool drops_single_axis(const Node& node, Facts& facts) {
  const auto axis = dropped_axis(node, facts);
  return axis && facts.shape(*node.inputs[0]).known()[*axis].is(1);
}

std::optional<CutRange> taken_range(const Value& part, Facts& facts) {
  if (auto range = cut_range(part, facts)) return range;
  const Node* node = part.producer;
  const auto axis = node ? dropped_axis(*node, facts) : std::nullopt;
  const auto first = axis ? start_of_gather(*node, facts) : std::nullopt;
  return first ? std::optional(CutRange{node->inputs[0], *axis, *first, 1, true}) : std::nullopt;
}

namespace {

/// What PART, to which an axis was given back that a Gather of one element dropped, is of the source; nullopt if it is anything
/// else.
///
///   Unsqueeze<i>(Gather<axis = i>(x, 2))  =>  x from 2 on, one element
std::optional<CutRange> picked_range(const Value& part, const std::function<Value&(Value&)>& seen, Facts& facts) {
  constexpr int kMostRegroupings = 8;
  std::optional<CutRange> range;
  const Node* node = part.producer;
  for (int step = 0; !range && node && has(*node, Trait::kRegroups) && node->input(0) && step < kMostRegroupings; ++step) {
    const Value& source = seen(*node->inputs[0]);
    range = taken_range(source, facts);
    node = source.producer;
  }
  const MaybeShape own = facts.shape(part);
  if (!range || !range->drops_axis || !own) return std::nullopt;
  Shape expected = facts.shape(*range->source).known();
  expected[range->axis] = 1;
  range->drops_axis = false;
  return *own == expected ? range : std::nullopt;
}

/// Adds to JOINED, if that begins its source, what PART, beside it along its axis, is of that; false if it is anything else. A
/// part that is joined of others is these, NESTED deep.
bool take_part(CutRange& joined, Value* part, const std::function<Value&(Value&)>& seen, Facts& facts, int nested = 0) {
  constexpr int kMostNested = 8;
  Value* made = part ? &seen(*part) : nullptr;
  auto range = made ? cut_range(*made, facts) : std::nullopt;
  if (made && !range) range = picked_range(*made, seen, facts);
  if (made && !range && made->producer && made->producer->is("Concat") && nested < kMostNested) {
    const MaybeShape shape = facts.shape(*made);
    return shape && axis_in(made->producer->int_attribute("axis", 0), shape->size()) == joined.axis &&
           std::ranges::all_of(made->producer->inputs,
                               [&](Value* inner) { return take_part(joined, inner, seen, facts, nested + 1); });
  }
  if (!range || range->axis != joined.axis || range->first != joined.count) return false;
  Value& from = seen(*range->source);
  if (joined.source && joined.source != &from) return false;
  joined.source = &from;
  joined.count = joined.count + range->count;
  return true;
}

}  // namespace

std::optional<CutRange> joined_range(std::span<Value* const> parts, size_t axis, const std::function<Value&(Value&)>& seen,
                                     Facts& facts) {
  CutRange joined{nullptr, axis};
  const bool are_parts = std::ranges::all_of(parts, [&](Value* part) { return take_part(joined, part, seen, facts); });
  return are_parts && joined.source ? std::optional(joined) : std::nullopt;
}

}  // namespace attn_opt
