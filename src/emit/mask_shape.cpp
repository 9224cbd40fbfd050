#include "src/emit/mask_shape.h"

#include <algorithm>
#include <string>
#include <utility>

namespace attn_opt {
namespace {

Matched<void> check_leading(const Placed& mask, Site& site) {
  const std::string detail = "mask " + to_string(mask.shape) + " against " + to_string(site.scores);
  if (mask.shape.size() > 4) return missed("emit.mask-shape", mask.value->producer, detail);
  for (size_t axis = 0; axis < mask.shape.size(); ++axis) {
    const Dim size = from_last(mask.shape, axis), full = from_last(site.scores, axis);
    if (size.is(1) || size == full) continue;
    if ((axis >= 2 && full.is(1)) || !may_be_equal(size, full))
      return missed("emit.mask-shape", mask.value->producer, detail);
    site.assume_equal(detail);
  }
  return {};
}

}  // namespace

Matched<Value*> fit_to_scores(Placed mask, Site& site) {
  ATTN_OPT_DONE(check_leading(mask, site));
  if (mask.shape.size() < 2) {
    std::vector<int64_t> axes{0};
    if (mask.shape.empty()) axes.push_back(1);
    mask.value = site.build.node("Unsqueeze", {mask.value, site.build.ints(axes)});
    mask.shape.insert(mask.shape.begin(), axes.size(), 1);
  }
  Shape target(2, 1);
  for (size_t axis : {0, 1}) {
    const Dim& full = site.scores[2 + axis];
    if (mask.shape[mask.shape.size() - 2 + axis] != full) target[axis] = full;
  }
  if (target[0].is(1) && target[1].is(1)) return mask.value;
  Value* sizes = site.sizes.sizes(target);
  if (!sizes)
    return missed("emit.shape", mask.value->producer, "no value at hand has a size of " + to_string(target));
  return site.build.node("Expand", {mask.value, sizes});
}

Shape broadcast_within_scores(const Shape& one, const Shape& other, const Site& site) {
  Shape shape(std::max(one.size(), other.size()));
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const Dim a = from_last(one, axis), b = from_last(other, axis);
    const bool b_is_full = b == from_last(site.scores, axis);
    shape[shape.size() - 1 - axis] = a.is(1) || b_is_full ? b : a;
  }
  return shape;
}

}  // namespace attn_opt
