#include "patterns/leading_split.h"

#include <algorithm>

#include "patterns/layout_checks.h"
#include "patterns/operands/operand_walk.h"

namespace attn_opt {
namespace {

/// The shapes that the scores of READING have on their way, batch and heads first.
std::vector<Shape> shapes_of_scores(const Reading& reading, MatchContext& context) {
  std::vector<Shape> shapes;
  const auto add = [&](Value& value, const ScoreLayout& layout) {
    const MaybeShape shape = context.facts.shape(value);
    if (shape && shape->size() >= 2) shapes.push_back(layout.placed(*shape));
  };
  add(*reading.scores.value, reading.scores.layout);
  add(*reading.probabilities.probabilities, reading.value_product.probabilities);
  shapes.insert(shapes.end(), reading.scores.frames.begin(), reading.scores.frames.end());
  return shapes;
}

/// Batch and heads of a merged leading axis where Q itself was merged from them.
std::optional<LeadingSplit> split_by_query(const ScoreProduct& product, MatchContext& context) {
  const Operand query = walk_operand({product.query.value, axes_of(product.query, std::nullopt, context)}, context);
  for (auto view = query.views.rbegin(); view != query.views.rend(); ++view) {
    std::vector<Dim> heads;
    for (const Factor& factor : view->axes.factors())
      if (factor.role == Role::kHead) heads.push_back(factor.size);
    if (heads.size() == 2 && heads[1].is_constant()) return LeadingSplit{heads[0], heads[1]};
  }
  return std::nullopt;
}

}  // namespace

Matched<void> part_leading_axes(Reading& reading, MatchContext& context) {
  const std::vector<Shape> shapes = shapes_of_scores(reading, context);
  const auto split = has_more_leading_axes(shapes) ? parted_leading_axes(shapes) : std::nullopt;
  if (!split) return {};
  ScoreLayout& layout = reading.scores.layout;
  layout.head_axes = head_axes_in(shapes[0], *split).value_or(layout.head_axes);
  const ProbabilityWalk& walk = reading.probabilities;
  const auto heads = shapes.size() > 1 ? head_axes_in(shapes[1], *split) : std::nullopt;
  if (heads) {
    ATTN_OPT_MATCH(reading.value_product, value_product(*walk.product, *walk.probabilities, context, heads));
  }
  return {};
}

std::optional<LeadingSplit> leading_split(const Reading& reading, MatchContext& context) {
  if (auto split = parted_leading_axes(shapes_of_scores(reading, context))) return split;
  if (reading.score_product.scores.size() != 3) return std::nullopt;
  return split_by_query(reading.score_product, context);
}

Matched<void> check_leading_sizes(const AxisMap& made, const std::optional<LeadingSplit>& split, const Reading& reading) {
  const Dim batch = made.size(Role::kBatch), heads = made.size(Role::kHead);
  // A product has no fewer than what it multiplies.
  const bool lacks_some = split && ((batch.is(1) && !split->batch.is(1)) || (heads.is(1) && !split->heads.is(1)));
  const bool are_as_many = split && batch != split->batch && batch * heads == split->batch * split->heads;
  if (!lacks_some && !are_as_many) return {};
  return missed(
      "probabilities.reshape", reading.probabilities.product,
      "a batch of " + split->batch.str() + " with " + split->heads.str() + " heads as " + batch.str() + " with " + heads.str(),
      reading.probabilities.peeled);
}

void set_leading_sizes(const Reading& reading, const std::optional<LeadingSplit>& split, Sdpa& sdpa) {
  sdpa.batch = sdpa.query_heads = 1;
  if (split) {
    sdpa.batch = split->batch;
    sdpa.query_heads = split->heads;
    return;
  }
  const Shape& scores = reading.score_product.scores;
  const size_t leading = scores.size() - 2, heads = std::min(reading.scores.layout.head_axes, leading);
  for (size_t axis = 0; axis < leading; ++axis) {
    Dim& size = axis + heads < leading ? sdpa.batch : sdpa.query_heads;
    size = size * scores[axis];
  }
}

}  // namespace attn_opt
