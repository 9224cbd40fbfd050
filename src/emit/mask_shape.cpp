#include "src/emit/mask_shape.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

namespace attn_opt {
namespace {

Matched<void> check_leading(const Placed& mask, Site& site) {
  const auto detail = [&] { return "mask " + to_string(mask.shape) + " against " + to_string(site.scores); };
  if (mask.shape.size() > 4) return missed("emit.mask-shape", mask.value->producer, detail());
  for (size_t axis = 0; axis < mask.shape.size(); ++axis) {
    const Dim size = from_last(mask.shape, axis), full = from_last(site.scores, axis);
    if (size.is(1) || size == full) continue;
    if ((axis >= 2 && full.is(1)) || !may_be_equal(size, full))
      return missed("emit.mask-shape", mask.value->producer, detail());
  }
  return {};
}

constexpr int kOpsetOfShortMasks = 24;

/// What MASK is padded from, if keys behind it are all that are added, and masked; null otherwise.
Value* before_padding(const Value& mask, Site& site) {
  const Node* pad = mask.producer;
  if (!pad || !pad->is("Pad") || pad->string_attribute("mode", "constant") != "constant" || !pad->input(2)) return nullptr;
  const DataType type = site.facts.type(mask);
  const IntegerData* pads = site.facts.integers(*pad->inputs[1]);
  if (!pads || pads->values.size() % 2 != 0) return nullptr;
  for (size_t i = 0; i + 1 < pads->values.size(); ++i)
    if (!pads->values[i].is(0)) return nullptr;
  const IntegerData* axes = pad->input(3) ? site.facts.integers(*pad->inputs[3]) : nullptr;
  if (pad->input(3) && !(axes && (axes->values.back().is(-1) ||
                                  axes->values.back() == static_cast<int64_t>(site.facts.shape(mask).known().size()) - 1)))
    return nullptr;
  const auto fill = site.facts.uniform(*pad->inputs[2]);
  const double masks = type == onnx::TensorProto::BOOL ? 0 : -INFINITY;
  return fill == masks ? pad->inputs[0] : nullptr;
}

/// Takes MASK before its padding where the node pads it itself.
bool leave_padding_to_node(Placed& mask, Site& site) {
  if (!site.target.takes_short_masks || site.build.edit().graph().model().edit_opset() < kOpsetOfShortMasks) return false;
  Value* given = before_padding(*mask.value, site);
  const MaybeShape shape = given ? site.facts.shape(*given) : nullptr;
  if (!shape || shape->size() != mask.shape.size() || shape->empty()) return false;
  mask = {given, *shape};
  return true;
}

/// Unit axes in front of MASK, so that it has RANK.
void add_axes(Placed& mask, size_t rank, Site& site) {
  std::vector<int64_t> axes(rank - mask.shape.size());
  std::iota(axes.begin(), axes.end(), int64_t{0});
  mask.value = site.build.along("Unsqueeze", *mask.value, axes);
  mask.shape.insert(mask.shape.begin(), axes.size(), 1);
}

/// MASK stretched to SIZES, which TARGET says. By adding nothing where only a run tells its own number of keys: OpenVINO 2026.4
/// leaves out an Expand in front of Attention, and then reads other keys' numbers or fails.
Value* stretched(const Placed& mask, const Shape& target, Value* sizes, Site& site) {
  if (target.back().is(1) || mask.shape.back().is_constant()) return site.build.node("Expand", {mask.value, sizes});
  const bool is_bool = site.facts.type(*mask.value) == onnx::TensorProto::BOOL;
  Value* nothing = is_bool ? site.build.constant(Tensor::scalar(false)) : site.build.scalar(0, site.facts.type(*mask.value));
  return site.build.node(is_bool ? "Or" : "Add", {mask.value, site.build.node("Expand", {nothing, sizes})});
}

}  // namespace

Matched<Value*> fit_to_scores(Placed mask, Site& site) {
  ATTN_OPT_DONE(check_leading(mask, site));
  const bool is_short = mask.shape.size() > 0 && mask.shape.back() == site.scores[3] && leave_padding_to_node(mask, site);
  const bool has_keys = is_short || (mask.shape.size() > 0 && mask.shape.back() == site.scores[3]);
  if (mask.shape.size() == 1 && has_keys && site.target.takes_rank_1_masks) return mask.value;
  const size_t least_rank = site.target.takes_masks_of_few_axes ? 2 : site.scores.size();
  if (mask.shape.size() < least_rank) add_axes(mask, least_rank, site);
  // All axes of the scores: OpenVINO 2026.4 does not compile an Expand to fewer of them in front of Attention.
  Shape target(site.scores.size(), 1);
  for (size_t axis : {0, 1}) {
    const Dim& full = site.scores[2 + axis];
    const Dim& size = mask.shape[mask.shape.size() - 2 + axis];
    const bool is_taken = axis == 0 ? size.is(1) && site.target.broadcasts_mask_rows : is_short;
    if (size != full && !is_taken) target[2 + axis] = full;
  }
  if (!site.target.broadcasts_masks)
    for (size_t axis : {0, 1})
      if (mask.shape[axis] != site.scores[axis]) target[axis] = site.scores[axis];
  if (target == Shape(target.size(), 1)) return mask.value;
  ATTN_OPT_MATCH(Value * sizes, site.sizes_of(target, *mask.value));
  return stretched(mask, target, sizes, site);
}

}  // namespace attn_opt
