#include "src/emit/layout.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

namespace attn_opt {
namespace {

/// For each factor of GROUPING the one that follows it on its axis; -1 for the last.
std::vector<int> followers(const Grouping& grouping) {
  const auto& all = grouping.factors();
  std::vector<int> follower(all.empty() ? 0 : *std::ranges::max_element(all) + 1, -1);
  for (size_t axis = 0; axis < grouping.rank(); ++axis) {
    const auto factors = grouping.axis(axis);
    for (size_t i = 1; i < factors.size(); ++i) follower[factors[i - 1]] = factors[i];
  }
  return follower;
}

/// The axes of GROUPING cut wherever OTHER does not keep two factors side by side.
Grouping cut(const Grouping& grouping, const Grouping& other) {
  const std::vector<int> follower = followers(other);
  const auto together = [&](int a, int b) { return static_cast<size_t>(a) < follower.size() && follower[a] == b; };
  Grouping pieces;
  pieces.reserve(grouping.rank() + grouping.factors().size(), grouping.factors().size());
  for (size_t axis = 0; axis < grouping.rank(); ++axis) {
    const auto factors = grouping.axis(axis);
    size_t begin = 0;
    for (size_t end = 1; end < factors.size(); ++end) {
      if (together(factors[end - 1], factors[end])) continue;
      pieces.add_axis(factors.subspan(begin, end - begin));
      begin = end;
    }
    pieces.add_axis(factors.subspan(begin));
  }
  return pieces;
}

bool same_axis(std::span<const int> a, std::span<const int> b) { return std::ranges::equal(a, b); }

/// Axes of MORE that hold nothing and whose removal gives FEWER; nullopt if there are no such.
std::optional<std::vector<int64_t>> added_unit_axes(const Grouping& fewer, const Grouping& more) {
  std::vector<int64_t> added;
  size_t next = 0;
  for (size_t axis = 0; axis < more.rank(); ++axis) {
    if (next < fewer.rank() && same_axis(fewer.axis(next), more.axis(axis)))
      ++next;
    else if (more.axis(axis).empty())
      added.push_back(static_cast<int64_t>(axis));
    else
      return std::nullopt;
  }
  if (next != fewer.rank()) return std::nullopt;
  return added;
}

Matched<Value*> write_regrouping(Value& value, const AxisMap& map, const Grouping& from, const Grouping& to, Site& site) {
  if (from == to) return &value;
  if (auto axes = added_unit_axes(from, to)) return site.build.along("Unsqueeze", value, *axes);
  if (auto axes = added_unit_axes(to, from)) return site.build.along("Squeeze", value, *axes);
  return write_reshape(value, shape_of(map, from), shape_of(map, to), site);
}

}  // namespace

Grouping grouping_for(const AxisMap& map, IoForm form) {
  using Roles = std::vector<std::vector<Role>>;
  static const Roles k4dAxes = {{Role::kBatch}, {Role::kHead}, {Role::kRow}, {Role::kFeature}};
  static const Roles k3dAxes = {{Role::kBatch}, {Role::kRow}, {Role::kHead, Role::kFeature}};
  Grouping grouping;
  grouping.reserve(4, map.factors().size());
  for (const auto& roles : form == IoForm::k4d ? k4dAxes : k3dAxes) {
    for (const Role role : roles)
      for (size_t i = 0; i < map.factors().size(); ++i)
        if (map.factors()[i].role == role && !map.factors()[i].repeated) grouping.add_factor(static_cast<int>(i));
    grouping.end_axis();
  }
  return grouping;
}

Shape shape_of(const AxisMap& map, const Grouping& grouping) {
  Shape shape;
  for (size_t axis = 0; axis < grouping.rank(); ++axis) {
    Dim size = 1;
    for (int factor : grouping.axis(axis)) size = size * map.factors()[factor].size;
    shape.push_back(size);
  }
  return shape;
}

LayoutChange::LayoutChange(Grouping from, Grouping to) : from_(std::move(from)), to_(std::move(to)) {
  if (from_ == to_) return;
  split_ = cut(from_, to_);
  pieces_ = cut(to_, from_);
  if (split_.without_unit_axes() == pieces_.without_unit_axes()) {
    split_ = from_;
    pieces_ = to_;
    return;
  }
  match_unit_axes();
  find_order();
}

/// Gives the two sides of the Transpose as many axes of size 1, without a Reshape that is not needed anyway.
void LayoutChange::match_unit_axes() {
  const size_t before = split_.unit_axes(), after = pieces_.unit_axes();
  if (before == after) return;
  Grouping& changed = split_ == from_ ? pieces_ : split_;
  const size_t wanted = split_ == from_ ? before : after;
  changed = changed.without_unit_axes();
  changed.add_unit_axes(wanted);
}

void LayoutChange::find_order() {
  std::vector<bool> used(split_.rank(), false);
  for (size_t piece = 0; piece < pieces_.rank(); ++piece)
    for (size_t axis = 0; axis < split_.rank(); ++axis)
      if (!used[axis] && same_axis(split_.axis(axis), pieces_.axis(piece))) {
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
  if (order_.size() != pieces_.rank() || order_.size() != split_.rank())
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
  if (unknown.size() > 1) return missed("emit.shape", value.producer, "no value at hand has the size " + to[unknown[1]].str());
  if (!symbolic.empty()) target[unknown.empty() ? symbolic[0] : unknown[0]] = -1;
  return site.build.node("Reshape", {&value, site.sizes.sizes(target)});
}

}  // namespace attn_opt
