#include "patterns/products/pointwise_convolution.h"

#include <algorithm>

#include "patterns/inner_values.h"
#include "patterns/preconditions.h"
#include "patterns/readers.h"

namespace attn_opt {
namespace {

/// True if all INTS of CONVOLUTION are NUMBER, as they are where it says nothing of them.
bool are_all(const Node& convolution, const char* ints, int64_t number) {
  const auto* own = convolution.ints_attribute(ints);
  return !own || std::ranges::all_of(*own, [number](int64_t one) { return one == number; });
}

/// True if CONVOLUTION makes each point of the same one of what it reads, whose shape is POINTS, of all its features.
bool is_pointwise(const Node& convolution, const Shape& points, const Shape& filters) {
  const bool is_single = std::all_of(filters.begin() + 2, filters.end(), [](const Dim& size) { return size.is(1); });
  return is_single && points.size() == filters.size() && convolution.int_attribute("group", 1) == 1 &&
         are_all(convolution, "strides", 1) && are_all(convolution, "pads", 0);
}

/// What CONVOLUTION adds, or null if that is nothing, or finite, and scores alone are made of it: it is the same for all keys.
Value* bias_of(const Node& convolution, Facts& facts) {
  Value* bias = convolution.input(2);
  return bias && is_known_finite(*bias, facts) && readers_of(*convolution.outputs[0], facts).only_one() ? nullptr : bias;
}

/// What CONVOLUTION makes of points and filters of RANK axes.
Value* as_product(Node& convolution, size_t rank, MatchContext& context) {
  InnerValues inner(convolution, context);
  Value &points = *convolution.inputs[0], &filters = *convolution.inputs[1];
  const bool is_line = rank == 3;
  Value* scores = inner.build().node(
      "MatMul", {inner.reshaped(&filters, {0, -1}), is_line ? &points : inner.reshaped(&points, {0, 0, -1})});
  if (Value* bias = bias_of(convolution, context.facts)) scores = inner.sum(scores, inner.reshaped(bias, {-1, 1}));
  if (is_line) return scores;
  const std::vector<Value*> sizes = {inner.size(points, 0), inner.size(filters, 0),
                                     inner.build().shape(points, 2, static_cast<int64_t>(rank))};
  return inner.build().node("Reshape", {scores, inner.concat(sizes, 0)});
}

}  // namespace

Ways peel_convolution(Node& convolution, const ScoreWalk& walk, MatchContext& context) {
  const MaybeShape points = context.facts.shape(*convolution.inputs[0]);
  const MaybeShape filters = context.facts.shape(*convolution.inputs[1]);
  if (!points || !filters || filters->size() < 3 || !is_pointwise(convolution, *points, *filters))
    return missed("scores.operator", &convolution, "Conv of more than single points", walk.peeled);
  if (axis_of_keys(walk, filters->size()) == 1)
    return missed("scores.operator", &convolution, "Conv whose filters are the keys", walk.peeled);
  return std::vector{step(walk, *as_product(convolution, filters->size(), context), "Conv")};
}

}  // namespace attn_opt
