#include "attn_opt/shape.h"

namespace attn_opt {

void DimList::lacks(size_t i) const {
  throw Defect("element " + std::to_string(static_cast<int64_t>(i)) + " of a list of " + std::to_string(size()) + " sizes was read");
}

void MaybeShape::lacks() { throw Defect("a shape that is not known was read"); }

Dim from_last(const Shape& shape, size_t axis) {
  return axis < shape.size() ? shape[shape.size() - 1 - axis] : Dim(1);
}

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (const Dim& dim : shape) text += (text.size() > 1 ? ", " : "") + dim.str();
  return text + ")";
}

}  // namespace attn_opt
