#include "patterns/regrouped_axis.h"

#include <span>
#include <vector>

namespace attn_opt {

std::optional<size_t> axis_kept(const Shape& before, const Shape& after, size_t axis) {
  const Dim& size = from_last(after, axis);
  const Dim behind = product(std::span(after).last(axis));
  for (size_t own = 0; own < before.size(); ++own)
    if (from_last(before, own) == size && product(std::span(before).last(own)) == behind) return own;
  return std::nullopt;
}

Value* regrouped_beside(Value& value, size_t from, const Shape& shape, size_t axis, InnerValues& inner, Facts& facts) {
  const MaybeShape own = facts.shape(value);
  if (!own || own->size() <= from) return nullptr;
  std::vector<Value*> sizes;
  size_t open = 0;
  for (size_t at = 0; at < shape.size(); ++at) {
    const bool is_kept = at + 1 + axis == shape.size(), is_number = shape[at].is_constant();
    if (!is_kept && !is_number) ++open;
    sizes.push_back(is_kept ? inner.size(value, static_cast<int64_t>(own->size() - 1 - from))
                            : inner.build().ints({is_number ? shape[at].value() : -1}));
  }
  return open > 1 ? nullptr : inner.build().node("Reshape", {&value, inner.concat(sizes, 0)});
}

}  // namespace attn_opt
