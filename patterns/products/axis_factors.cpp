#include "patterns/products/axis_factors.h"

namespace attn_opt {

void LetteredShape::add(const Dim& size, char letter, std::optional<int64_t> axis) {
  sizes.push_back(size);
  axes.push_back(axis);
  term += letter;
}

Value* reshaped(Value& value, const LetteredShape& shape, InnerValues& inner, Facts& facts) {
  const Shape& own = facts.shape(value).known();
  if (std::vector<Dim>(own) == shape.sizes) return &value;
  size_t open = 0;
  std::vector<Value*> sizes;
  for (size_t at = 0; at < shape.sizes.size(); ++at) {
    const Dim& size = shape.sizes[at];
    const bool is_open = !size.is_constant() && !shape.axes[at];
    if (is_open) ++open;
    sizes.push_back(size.is_constant() ? inner.build().ints({size.value()})
                    : is_open          ? inner.build().ints({-1})
                                       : inner.size(value, *shape.axes[at]));
  }
  return open > 1 ? nullptr : inner.build().node("Reshape", {&value, inner.concat(sizes, 0)});
}

}  // namespace attn_opt
