#include "src/emit/layout.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace attn_opt {
namespace {

std::set<std::pair<int, int>> neighbours(const Grouping& grouping) {
  std::set<std::pair<int, int>> pairs;
  for (const auto& axis : grouping)
    for (size_t i = 1; i < axis.size(); ++i) pairs.emplace(axis[i - 1], axis[i]);
  return pairs;
}

/// The axes of GROUPING cut wherever OTHER does not keep two factors side by side.
Grouping cut(const Grouping& grouping, const Grouping& other) {
  const auto together = neighbours(other);
  Grouping pieces;
  for (const auto& axis : grouping) {
    pieces.emplace_back();
    for (size_t i = 0; i < axis.size(); ++i) {
      if (i > 0 && !together.count({axis[i - 1], axis[i]})) pieces.emplace_back();
      pieces.back().push_back(axis[i]);
    }
  }
  return pieces;
}

Grouping without_unit_axes(Grouping grouping) {
  std::erase_if(grouping, [](const auto& axis) { return axis.empty(); });
  return grouping;
}

size_t count_unit_axes(const Grouping& grouping) {
  return static_cast<size_t>(
      std::count_if(grouping.begin(), grouping.end(), [](const auto& a) { return a.empty(); }));
}

/// Axes of MORE that hold nothing and whose removal gives FEWER; nullopt if there are no such.
std::optional<std::vector<int64_t>> added_unit_axes(const Grouping& fewer, const Grouping& more) {
  std::vector<int64_t> added;
  size_t next = 0;
  for (size_t axis = 0; axis < more.size(); ++axis) {
    if (next < fewer.size() && fewer[next] == more[axis])
      ++next;
    else if (more[axis].empty())
      added.push_back(static_cast<int64_t>(axis));
    else
      return std::nullopt;
  }
  if (next != fewer.size()) return std::nullopt;
  return added;
}

Matched<Value*> write_regrouping(Value& value, const AxisMap& map, const Grouping& from, const Grouping& to,
                                 Site& site) {
  if (from == to) return &value;
  if (auto axes = added_unit_axes(from, to))
    return site.build.node("Unsqueeze", {&value, site.build.ints(*axes)});
  if (auto axes = added_unit_axes(to, from))
    return site.build.node("Squeeze", {&value, site.build.ints(*axes)});
  return write_reshape(value, shape_of(map, from), shape_of(map, to), site);
}

}  // namespace

Grouping grouping_of(const AxisMap& map) {
  Grouping grouping;
  for (size_t axis = 0; axis < map.rank(); ++axis) grouping.push_back(map.axis(axis));
  return grouping;
}

Grouping grouping_for(const AxisMap& map, IoForm form) {
  auto axis_of_role = [&](Role role) -> size_t {
    if (form == IoForm::k4d) return static_cast<size_t>(role);
    return role == Role::kBatch ? 0 : role == Role::kRow ? 1 : 2;
  };
  Grouping grouping(form == IoForm::k4d ? 4 : 3);
  for (size_t i = 0; i < map.factors().size(); ++i) {
    const Factor& factor = map.factors()[i];
    if (!factor.repeated) grouping[axis_of_role(factor.role)].push_back(static_cast<int>(i));
  }
  return grouping;
}

Shape shape_of(const AxisMap& map, const Grouping& grouping) {
  Shape shape;
  for (const auto& axis : grouping) {
    Dim size = 1;
    for (int factor : axis) size = size * map.factors()[factor].size;
    shape.push_back(size);
  }
  return shape;
}

LayoutChange::LayoutChange(Grouping from, Grouping to) : from_(std::move(from)), to_(std::move(to)) {
  split_ = cut(from_, to_);
  pieces_ = cut(to_, from_);
  if (without_unit_axes(split_) == without_unit_axes(pieces_)) {
    split_ = from_;
    pieces_ = to_;
    return;
  }
  match_unit_axes();
  find_order();
}

/// Gives the two sides of the Transpose as many axes of size 1, without a Reshape that is not needed anyway.
void LayoutChange::match_unit_axes() {
  const size_t before = count_unit_axes(split_), after = count_unit_axes(pieces_);
  if (before == after) return;
  Grouping& changed = split_ == from_ ? pieces_ : split_;
  const size_t wanted = split_ == from_ ? before : after;
  changed = without_unit_axes(std::move(changed));
  changed.insert(changed.begin(), wanted, {});
}

void LayoutChange::find_order() {
  std::vector<bool> used(split_.size(), false);
  for (const auto& piece : pieces_)
    for (size_t axis = 0; axis < split_.size(); ++axis)
      if (!used[axis] && split_[axis] == piece) {
        used[axis] = true;
        order_.push_back(static_cast<int64_t>(axis));
        break;
      }
}

int LayoutChange::node_count() const {
  if (order_.empty()) return from_ != to_;
  return (from_ != split_) + 1 + (pieces_ != to_);
}

Matched<Value*> LayoutChange::write(Value& value, const AxisMap& map, Site& site) const {
  if (order_.empty()) return write_regrouping(value, map, from_, to_, site);
  if (order_.size() != pieces_.size() || order_.size() != split_.size())
    return missed("emit.shape", value.producer, map.str() + " lacks a factor");
  ATTN_OPT_MATCH(Value * split, write_regrouping(value, map, from_, split_, site));
  Value* transposed = site.build.node("Transpose", {split}, {GraphBuilder::attribute("perm", order_)});
  return write_regrouping(*transposed, map, pieces_, to_, site);
}

Matched<Value*> write_reshape(Value& value, const Shape& from, const Shape& to, Site& site) {
  if (from == to) return &value;
  site.sizes.add(value, from);
  Shape target = to;
  std::vector<size_t> symbolic, unknown;
  for (size_t i = 0; i < to.size(); ++i) {
    const bool kept = i < from.size() && from[i] == to[i];
    if (to[i].is(0) && !kept) return missed("emit.shape", value.producer, to_string(to) + " is empty");
    if (to[i].is_constant()) continue;
    if (kept) {
      target[i] = 0;
      continue;
    }
    symbolic.push_back(i);
    if (!site.sizes.knows(to[i])) unknown.push_back(i);
  }
  if (unknown.size() > 1)
    return missed("emit.shape", value.producer, "no value at hand has the size " + to[unknown[1]].str());
  if (!symbolic.empty()) target[unknown.empty() ? symbolic[0] : unknown[0]] = -1;
  return site.build.node("Reshape", {&value, site.sizes.sizes(target)});
}

}  // namespace attn_opt
