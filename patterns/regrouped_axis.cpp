#include "patterns/regrouped_axis.h"

#include <span>
#include <vector>

#include "attn_opt/operator_traits.h"
#include "patterns/layout_checks.h"

namespace attn_opt {

namespace {

/// The axis of BEFORE that is the AXIS of AFTER, both counted from the last, of a regrouping; nullopt if others are regrouped
/// with it.
std::optional<size_t> axis_kept(const Shape& before, const Shape& after, size_t axis) {
  const Dim& size = from_last(after, axis);
  const Dim behind = product(std::span(after).last(axis));
  for (size_t own = 0; own < before.size(); ++own)
    if (from_last(before, own) == size && product(std::span(before).last(own)) == behind) return own;
  return std::nullopt;
}

}  // namespace

std::optional<RegroupedBeside> before_regrouping_beside(const Value& value, size_t axis, Facts& facts) {
  const Node* node = value.producer;
  const MaybeShape after = facts.shape(value);
  if (!node || !has(*node, Trait::kRegroups) || !node->input(0) || !after || after->size() <= axis) return std::nullopt;
  std::optional<size_t> kept;
  const auto keeps_axis = [&](const Shape& before) { return (kept = axis_kept(before, *after, axis)).has_value(); };
  Value* source = before_regroupings(*node, keeps_axis, facts);
  return source ? std::optional(RegroupedBeside{source, *kept}) : std::nullopt;
}

Value* regrouped_beside(Value& value, size_t from, const Shape& shape, size_t axis, InnerValues& inner, Facts& facts) {
  const MaybeShape own = facts.shape(value);
  if (!own || own->size() <= from) return nullptr;
  std::vector<Value*> sizes;
  bool has_open = false;
  for (size_t at = 0; at < shape.size(); ++at) {
    const bool is_kept = at + 1 + axis == shape.size();
    const bool is_open = !is_kept && !shape[at].is_constant() && !has_open;  // Reshape computes one
    has_open |= is_open;
    sizes.push_back(is_kept   ? inner.size(value, static_cast<int64_t>(own->size() - 1 - from))
                    : is_open ? inner.build().ints({-1})
                              : inner.size_above(shape[at], value));
    if (!sizes.back()) return nullptr;
  }
  return inner.build().node("Reshape", {&value, inner.concat(sizes, 0)});
}

}  // namespace attn_opt
