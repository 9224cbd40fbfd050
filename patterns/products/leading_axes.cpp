#include "patterns/products/leading_axes.h"

#include <algorithm>
#include <span>

namespace attn_opt {
namespace {

constexpr size_t kUsualRank = 4;  // batch, heads, queries, keys

std::span<const Dim> leading_of(const Shape& shape) { return std::span(shape).first(shape.size() - 2); }

/// SHAPE's leading axes up to the last whose size is no number, or up to the first: these are the batch.
LeadingSplit behind_open_sizes(const Shape& shape) {
  const auto leading = leading_of(shape);
  size_t batch = leading.size() - 1;
  while (batch > 1 && leading[batch - 1].is_constant()) --batch;
  return {product(leading.first(batch)), product(leading.subspan(batch))};
}

}  // namespace

bool has_more_leading_axes(const std::vector<Shape>& shapes) {
  return std::ranges::any_of(shapes, [](const Shape& shape) { return shape.size() > kUsualRank; });
}

std::optional<LeadingSplit> parted_leading_axes(const std::vector<Shape>& shapes) {
  const auto is_usual = [](const Shape& shape) { return shape.size() == kUsualRank; };
  auto usual = std::ranges::find_if(shapes, [&](const Shape& shape) { return is_usual(shape) && !shape[0].is(1); });
  if (usual == shapes.end()) usual = std::ranges::find_if(shapes, is_usual);  // batch and heads may be in one axis behind a 1
  if (usual != shapes.end()) return LeadingSplit{(*usual)[0], (*usual)[1]};
  const auto more = std::ranges::find_if(shapes, [](const Shape& shape) { return shape.size() > kUsualRank; });
  const bool differ =
      more != shapes.end() && std::ranges::any_of(shapes, [&](const Shape& shape) { return shape.size() != more->size(); });
  return differ ? std::optional(behind_open_sizes(*more)) : std::nullopt;
}

std::optional<size_t> head_axes_in(const Shape& shape, const LeadingSplit& split) {
  const auto leading = leading_of(shape);
  for (size_t batch = 1; batch < leading.size(); ++batch)
    if (product(leading.first(batch)) == split.batch && product(leading.subspan(batch)) == split.heads)
      return leading.size() - batch;
  return std::nullopt;
}

}  // namespace attn_opt
