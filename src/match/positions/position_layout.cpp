// Elements that are moved: where they stand now tells where they stood.
#include <algorithm>

#include "src/match/node_forms.h"
#include "src/match/permutation.h"
#include "src/match/positions/position_reader.h"

namespace attn_opt {
namespace {

using Axes = std::vector<size_t>;  ///< counted from the last

/// READING where axis FROM[i] has become axis TO[i]; all others have one element.
void move_axes(Reading& reading, const Axes& from, const Axes& to) {
  for_each_form(reading, [&](IndexForm& form) {
    IndexForm moved{{}, form.offset};
    for (size_t i = 0; i < from.size(); ++i) moved.set_factor(to[i], form.factor(from[i]));
    moved.length = form.length;
    const auto axis = std::ranges::find(from, form.length.axis);
    if (axis != from.end()) moved.length.axis = to[static_cast<size_t>(axis - from.begin())];
    form = std::move(moved);
  });
}

Axes longer_than_one(const Shape& shape) {
  Axes axes;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (!from_last(shape, axis).is(1)) axes.push_back(axis);
  return axes;
}

/// Where a slice from START of an axis of SIZE elements begins; nullopt if that is not proven.
std::optional<Dim> first_index(const Dim& start, const Dim& size) {
  if (start.never_negative()) return start;
  if (!(Dim(-1) - start).never_negative()) return std::nullopt;
  const Dim from_end = size + start;
  if ((Dim(0) - from_end).never_negative()) return Dim(0);
  return from_end.never_negative() ? std::optional(from_end) : std::nullopt;
}

/// Replaces index I of AXIS by START + STEP * I in all of READING; false where that cannot be.
bool substitute(Reading& reading, size_t axis, const std::optional<Dim>& start, const Dim& step) {
  bool done = true;
  for_each_form(reading, [&](IndexForm& form) {
    if (!form.depends_on(axis)) return;
    const bool forward = start && step.is_constant() && step.value() > 0;
    const auto next = forward ? substituted(form, axis, *start, step.value()) : std::nullopt;
    if (next) form = *next;
    done &= next.has_value();
  });
  return done;
}

/// FORM of a tensor of RANK where AXIS is indexed by INDEX, whose COUNT axes take its place.
std::optional<IndexForm> indexed(const IndexForm& form, size_t axis, size_t rank, const IndexForm& index, size_t count) {
  if (form.length.value || index.length.value) return std::nullopt;
  IndexForm result{{}, form.offset};
  for (size_t own = 0; own < rank; ++own)
    if (own != axis) result.set_factor(own < axis ? own : own + count - 1, form.factor(own));
  IndexForm placed{{}, index.offset};
  for (size_t own = 0; own < count; ++own) placed.set_factor(axis + own, index.factor(own));
  return sum(result, placed, form.factor(axis));
}

}  // namespace

/// Axes of one element come and go; the others stay as they are.
PositionReader::Found PositionReader::regrouped(Node& node) {
  Found found = follow(node.input(0));
  if (!found) return std::nullopt;
  const MaybeShape before = facts_.shape(*node.inputs[0]), after = facts_.shape(*node.outputs[0]);
  if (!before || !after) return std::nullopt;
  const Axes from = longer_than_one(*before), to = longer_than_one(*after);
  const auto same_size = [&](size_t a, size_t b) { return from_last(*before, a) == from_last(*after, b); };
  if (!std::ranges::equal(from, to, same_size)) return std::nullopt;
  move_axes(*found, from, to);
  return found;
}

PositionReader::Found PositionReader::transposed(Node& node) {
  Found found = follow(node.input(0));
  const MaybeShape shape = facts_.shape(*node.inputs[0]);
  if (!found || !shape) return std::nullopt;
  const size_t rank = shape->size();
  const std::vector<int64_t> perm = permutation(node, rank);
  if (perm.size() != rank) return std::nullopt;
  Axes from, to;
  for (size_t left = 0; left < rank; ++left) {
    from.push_back(rank - 1 - static_cast<size_t>(perm[left]));
    to.push_back(rank - 1 - left);
  }
  move_axes(*found, from, to);
  return found;
}

PositionReader::Found PositionReader::slice(Node& node) {
  Found found = follow(node.input(0));
  const MaybeShape shape = facts_.shape(*node.inputs[0]);
  if (!found || !shape) return std::nullopt;
  const std::vector<Dim> starts = dims_given(node, "starts", 1, facts_), axes = dims_given(node, "axes", 3, facts_),
                         steps = dims_given(node, "steps", 4, facts_);
  const bool says_axes = node.input(3) || node.attribute("axes");
  if (starts.empty() || (says_axes && axes.size() != starts.size()) || (node.input(4) && steps.size() != starts.size()))
    return std::nullopt;
  for (size_t i = 0; i < starts.size(); ++i) {
    const Dim given = axes.empty() ? Dim(static_cast<int64_t>(i)) : axes[i];
    const auto axis = given.is_constant() ? axis_in(given.value(), shape->size()) : std::nullopt;
    if (!axis) return std::nullopt;
    const auto start = first_index(starts[i], (*shape)[*axis]);
    if (!substitute(*found, shape->size() - 1 - *axis, start, steps.empty() ? Dim(1) : steps[i])) return std::nullopt;
  }
  return found;
}

PositionReader::Found PositionReader::gather(Node& node) {
  Found found = follow(node.input(0));
  const auto index = found ? form(node.input(1)) : std::nullopt;
  if (!index) return std::nullopt;
  const MaybeShape data = facts_.shape(*node.inputs[0]), indices = facts_.shape(*node.inputs[1]);
  if (!data || !indices || is_never_negative(*index, *indices) != true) return std::nullopt;
  const auto axis = axis_in(node.int_attribute("axis", 0), data->size());
  if (!axis) return std::nullopt;
  bool done = true;
  for_each_form(*found, [&](IndexForm& form) {
    const auto next = indexed(form, data->size() - 1 - *axis, data->size(), *index, indices->size());
    if (next) form = *next;
    done &= next.has_value();
  });
  return done ? found : std::nullopt;
}

}  // namespace attn_opt
