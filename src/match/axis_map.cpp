#include "attn_opt/internal/axis_map.h"

#include <algorithm>
#include <utility>

#include "src/match/node_forms.h"

namespace attn_opt {

AxisMap AxisMap::of(const Shape& shape, const std::vector<Role>& roles) {
  AxisMap map;
  map.factors_.reserve(shape.size());
  std::vector<int> factor_of(shape.size(), -1);
  for (Role role : {Role::kBatch, Role::kHead, Role::kRow, Role::kFeature})
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (roles[axis] != role || shape[axis].is(1)) continue;
      factor_of[axis] = static_cast<int>(map.factors_.size());
      map.factors_.push_back({role, shape[axis]});
    }
  map.axes_.reserve(shape.size(), map.factors_.size());
  for (const int factor : factor_of) {
    if (factor >= 0) map.axes_.add_factor(factor);
    map.axes_.end_axis();
  }
  return map;
}

std::vector<int> AxisMap::of_role(Role role) const {
  std::vector<int> found;
  for (size_t i = 0; i < factors_.size(); ++i)
    if (factors_[i].role == role && !factors_[i].repeated) found.push_back(static_cast<int>(i));
  return found;
}

std::vector<int> AxisMap::all_of_role(Role role) const {
  std::vector<int> found;
  for (size_t i = 0; i < factors_.size(); ++i)
    if (factors_[i].role == role) found.push_back(static_cast<int>(i));
  return found;
}

Dim AxisMap::size(Role role, bool repeated) const {
  Dim size = 1;
  for (const Factor& factor : factors_)
    if (factor.role == role && factor.repeated == repeated) size = size * factor.size;
  return size;
}

bool AxisMap::has_repeats() const {
  return std::ranges::any_of(factors_, [](const Factor& f) { return f.repeated; });
}

bool AxisMap::repeats_interleave() const {
  bool repeat_seen = false;
  for (const Factor& factor : factors_) {
    if (factor.repeated && factor.role != Role::kHead) return false;
    if (factor.role != Role::kHead) continue;
    if (repeat_seen && !factor.repeated) return false;
    repeat_seen = repeat_seen || factor.repeated;
  }
  return true;
}

AxisMap AxisMap::after_transpose(const std::vector<int64_t>& perm) const {
  std::vector<size_t> order = all_axes(rank());
  for (size_t axis = 0; axis < perm.size(); ++axis) order.at(axis) = static_cast<size_t>(perm[axis]);
  return {factors_, axes_.reordered(order)};
}

AxisMap AxisMap::before_transpose(const std::vector<int64_t>& perm) const {
  std::vector<size_t> order = all_axes(rank());
  for (size_t axis = 0; axis < perm.size(); ++axis) order.at(static_cast<size_t>(perm[axis])) = axis;
  return {factors_, axes_.reordered(order)};
}

void AxisMap::split(int factor, const Dim& outer, const Dim& inner) {
  Factor second = factors_[factor];
  factors_[factor].size = outer;
  second.size = inner;
  factors_.insert(factors_.begin() + factor + 1, second);
  axes_.split(factor);
}

std::optional<AxisMap> AxisMap::regrouped(const Shape& shape) const {
  AxisMap map = *this;
  std::vector<int> ends;
  ends.reserve(shape.size());
  size_t next = 0;
  for (const Dim& size : shape) {
    Dim rest = size;
    while (!rest.is(1)) {
      if (next == map.axes_.factors().size()) return std::nullopt;
      const int factor = map.axes_.factors()[next];
      const Dim of_factor = map.factors_[factor].size;
      if (auto quotient = exact_quotient(rest, of_factor)) {
        rest = *std::move(quotient);
      } else if (auto inner = exact_quotient(of_factor, rest)) {
        map.split(factor, rest, *inner);
        rest = 1;
      } else {
        return std::nullopt;
      }
      ++next;
    }
    ends.push_back(static_cast<int>(next));
  }
  if (next != map.axes_.factors().size()) return std::nullopt;
  map.axes_.regroup(std::move(ends));
  return map;
}

std::optional<AxisMap> AxisMap::before_expand(const Shape& before, const Shape& after) const {
  // A Transpose of another rank than its input's leaves a map that is none of the value's.
  if (before.size() > after.size() || after.size() != rank()) return std::nullopt;
  AxisMap map;
  map.factors_ = factors_;
  map.axes_.reserve(before.size(), axes_.factors().size());
  const size_t added = after.size() - before.size();
  for (size_t axis = 0; axis < after.size(); ++axis) {
    const Dim size = axis < added ? Dim(1) : before[axis - added];
    const bool is_expanded = size != after[axis];
    if (is_expanded && !size.is(1)) return std::nullopt;
    if (is_expanded)
      for (int factor : axes_.axis(axis)) map.factors_[factor].repeated = true;
    if (axis >= added) map.axes_.add_axis(is_expanded ? std::span<const int>() : axes_.axis(axis));
  }
  return map;
}

std::optional<AxisMap> AxisMap::with_size(Role role, size_t axis, const Dim& size) const {
  const std::vector<int> own = of_role(role);
  if (own.size() != 1 || axis >= rank() || !std::ranges::equal(own, axes_.axis(axis))) return std::nullopt;
  AxisMap map = *this;
  map.factors_[own[0]].size = size;
  return map;
}

AxisMap AxisMap::with_sizes(Role role, const std::vector<Dim>& sizes) const {
  AxisMap map = *this;
  const std::vector<int> all = all_of_role(role);
  for (size_t i = 0; i < all.size(); ++i) map.factors_[static_cast<size_t>(all[i])].size = sizes[i];
  return map;
}

bool AxisMap::split_alike(AxisMap& one, Role role, AxisMap& other, Role other_role) {
  for (size_t at = 0;; ++at) {
    const std::vector<int> of_one = one.all_of_role(role), of_other = other.all_of_role(other_role);
    if (at == of_one.size() || at == of_other.size()) return of_one.size() == of_other.size();
    const Dim size = one.factors_[static_cast<size_t>(of_one[at])].size;
    const Dim other_size = other.factors_[static_cast<size_t>(of_other[at])].size;
    if (size == other_size) continue;
    if (const auto inner = exact_quotient(size, other_size))
      one.split(of_one[at], other_size, *inner);
    else if (const auto other_inner = exact_quotient(other_size, size))
      other.split(of_other[at], size, *other_inner);
    else
      return false;
  }
}

bool AxisMap::is_order(const std::vector<Role>& roles) const {
  if (roles.size() != rank()) return false;
  for (size_t axis = 0; axis < roles.size(); ++axis)
    if (!holds(axis, roles[axis])) return false;
  return true;
}

bool AxisMap::is_three_dimensional() const {
  if (rank() != 3) return false;
  std::vector<int> head_feature = of_role(Role::kHead);
  const std::vector<int> feature = of_role(Role::kFeature);
  head_feature.insert(head_feature.end(), feature.begin(), feature.end());
  return holds(0, Role::kBatch) && holds(1, Role::kRow) && std::ranges::equal(axes_.axis(2), head_feature);
}

std::optional<int64_t> AxisMap::axis_of(Role role, const std::vector<bool>& taken) const {
  for (size_t axis = 0; axis < rank(); ++axis)
    if (!taken[axis] && holds(axis, role)) return static_cast<int64_t>(axis);
  return std::nullopt;
}

std::string AxisMap::str() const {
  std::string text;
  for (size_t number = 0; number < rank(); ++number) {
    const std::span<const int> axis = axes_.axis(number);
    text += '[';
    for (size_t i = 0; i < axis.size(); ++i) {
      const Factor& factor = factors_[static_cast<size_t>(axis[i])];
      if (i) text += ' ';
      (text += "bhsd"[static_cast<size_t>(factor.role)]) += '=';
      text += factor.size.str();
    }
    text += ']';
  }
  return text;
}

}  // namespace attn_opt
