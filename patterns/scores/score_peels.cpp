// What may stand between the product of Q and K and the softmax.
//
//   Add, Sub, Sum, Mean, Neg, Mul, Div, Where, Min   biases, masks, scales (peel_form.h), other products (joined_product.h)
//   Cast, CastLike          float to float            Reshape, Flatten, (Un)squeeze   of the leading axes, or of rows
//   Tanh, Sigmoid, Reciprocal   softcap, and so ratios of exponentials (exponential_ratio.h)           Transpose
//   Max, Min, Clip          a floor or clamp          Sub                           of their maximum (score_bounds.h)
//   Concat, Pad             sinks (sinks.h)           Log, LogSoftmax               of a softmax of them (score_bounds.h)
//   Concat                  of scores of several keys, queries or heads (joined_keys.h)
//   ReduceSum, ReduceSumSquare   of squares of differences, as a product (squared_distance.h)
//   Reshape                 of heads out of the rows (heads_in_rows.h)
//   Reshape                 of any axes right behind the product (parted_scores.h), or of those that one above had merged
//                           (parted_frame.h)
//   Conv                    of single points, as a product (pointwise_convolution.h)
//   Slice, Split, Gather    of some rows, keys or heads (selected_scores.h)
//   Trilu, Scatter*         as masks (form_reader.h)           ScatterND   of sums of a part (sum_in_place.h)
//   If                      of branches that mask them (branch_scores.h)
//   Reshape, Transpose      that undo others above, with what is elementwise in between (undone_moves.h)
#include <cmath>
#include <span>

#include "attn_opt/operator_traits.h"
#include "patterns/layout_checks.h"
#include "patterns/products/parted_frame.h"
#include "patterns/products/parted_scores.h"
#include "patterns/products/pointwise_convolution.h"
#include "patterns/products/squared_distance.h"
#include "patterns/readers.h"
#include "patterns/scores/branch_scores.h"
#include "patterns/scores/exponential_ratio.h"
#include "patterns/scores/form_reader.h"
#include "patterns/scores/heads_in_rows.h"
#include "patterns/scores/laid_over.h"
#include "patterns/scores/merged_axes.h"
#include "patterns/scores/peel_form.h"
#include "patterns/scores/peel_steps.h"
#include "patterns/scores/regrouped_scores.h"
#include "patterns/scores/score_bounds.h"
#include "patterns/scores/selected_scores.h"
#include "patterns/scores/sink_peels.h"
#include "patterns/scores/sum_in_place.h"
#include "src/match/permutation.h"

namespace attn_opt {
namespace {

Ways peel_cast(Node& node, const ScoreWalk& walk, MatchContext& context) {
  if (!is_floating(context.facts.type(*node.inputs[0])) || !is_floating(context.facts.type(*node.outputs[0])))
    return missed("scores.cast", &node, "from or to a type that is not floating", walk.peeled);
  return std::vector{step(walk, *node.inputs[0], node.op())};
}

/// The split that NODE, a Reshape of scores whose rows hold heads, ends; nullopt if it takes none out.
std::optional<ScoreSplit> heads_taken_out_below(Node& node, Facts& facts) {
  const MaybeShape whole = facts.shape(*node.inputs[0]), apart = facts.shape(*node.outputs[0]);
  const bool takes_heads_out = node.is("Reshape") && whole && apart && holds_heads_in_rows(*whole, *apart);
  return takes_heads_out ? std::optional(rows_regrouped(*whole, *apart)) : std::nullopt;
}

/// What regroups rows and all that stands in front of them, of which NODE is the last; nullopt if it does more.
std::optional<ScoreSplit> rows_regrouped_below(Node& node, Facts& facts) {
  const MaybeShape before = facts.shape(*node.inputs[0]), after = facts.shape(*node.outputs[0]);
  const bool keeps_keys = before && after && before->size() >= 2 && after->size() >= 2 && before->back() == after->back();
  if (!keeps_keys || !has(node, Trait::kRegroups)) return std::nullopt;
  const auto rows_of = [](const Shape& shape) { return product(std::span(shape).first(shape.size() - 1)); };
  return rows_of(*before) == rows_of(*after) ? std::optional(rows_regrouped(*before, *after)) : std::nullopt;
}

/// WALK above NODE, which regroups the rows of its split once more before anything is laid over them; nullopt if it does more.
std::optional<Ways> regrouped_again(Node& node, const ScoreWalk& walk, Facts& facts) {
  const ScoreSplit& split = *walk.split;
  const bool is_bare = split.parts.back() == split.merged.back() && walk.terms.size() == split.first_term && !walk.sinks;
  const auto above = is_bare ? rows_regrouped_below(node, facts) : std::nullopt;
  if (!above) return std::nullopt;
  ScoreWalk next = step(walk, *node.inputs[0], node.op());
  next.split = rows_regrouped(above->parts, split.merged);
  next.split->first_term = split.first_term;
  return Ways(std::vector{std::move(next)});
}

/// A Reshape that splits queries and keys, or joins them again above what splits them.
std::optional<Ways> peel_split(Node& node, const ScoreWalk& walk, MatchContext& context) {
  if (walk.split) {
    Value* whole = walk.split->whole_above(*node.inputs[0], context.facts);
    Value* before = whole ? whole : walk.split->column_above(*node.inputs[0], context.facts);
    if (!before) return regrouped_again(node, walk, context.facts);
    ScoreWalk next = step(walk, *before, "Reshape(split)");
    if (auto merged = merge_terms(*walk.split, next.terms, next.sinks, node, context); !merged)
      return tl::unexpected<Miss>(merged.error());
    if (context.facts.shape(*before).known() != walk.split->merged) next.frames.push_back(walk.split->merged);
    if (!whole) next.layout = ScoreLayout::keys_by_queries(walk.split->merged.size());
    next.split.reset();
    return Ways(std::vector{std::move(next)});
  }
  auto split = split_below(node, context.facts);
  if (!split) split = heads_taken_out_below(node, context.facts);
  if (!split) split = rows_regrouped_below(node, context.facts);
  if (!split || !walk.layout.order.empty()) return std::nullopt;
  const bool takes_heads_out = split->keeps_keys();
  ScoreWalk next =
      step(walk, takes_heads_out ? *node.inputs[0] : *split->source, takes_heads_out ? node.op() : "Reshape(merged)");
  if (!takes_heads_out && split->regroups(context.facts)) next.frames.push_back(frame_at(node, walk, context));
  next.split = std::move(split);
  next.split->first_term = walk.terms.size();
  return Ways(std::vector{std::move(next)});
}

/// A node that only adds or leaves out axes of size 1, where the others do not lie as usual.
std::optional<ScoreWalk> before_unit_axes(Node& node, const ScoreWalk& walk, Facts& facts) {
  const MaybeShape before = facts.shape(*node.inputs[0]), after = facts.shape(*node.outputs[0]);
  const auto origins = before && after && !walk.split ? unit_moves(*before, *after) : std::nullopt;
  if (!origins || (!walk.layout.order.empty() && walk.layout.rank() != after->size())) return std::nullopt;
  ScoreWalk next = step(walk, *node.inputs[0], node.op());
  next.layout = walk.layout.before_moves(*origins, before->size());
  const bool has_keys = next.layout.order.empty() || next.layout.order.back() != kNoAxis;
  return has_keys ? std::optional(next) : std::nullopt;
}

/// A node that splits or joins leading axes where not all stand as usual.
std::optional<ScoreWalk> before_regrouped_axes(Node& node, const ScoreWalk& walk, MatchContext& context) {
  const MaybeShape before = context.facts.shape(*node.inputs[0]), after = context.facts.shape(*node.outputs[0]);
  auto layout = before && after && !walk.split ? walk.layout.before_regrouping(*before, *after) : std::nullopt;
  if (!layout) return std::nullopt;
  ScoreWalk next = step(walk, *node.inputs[0], node.op());
  next.frames.push_back(frame_at(node, walk, context));
  next.layout = *std::move(layout);
  return next;
}

Ways peel_reshape(Node& node, const ScoreWalk& walk, MatchContext& context) {
  Value* before = walk.split ? nullptr : regrouped_from(node, context.facts);
  const bool keeps_places = walk.layout.order.empty() || walk.layout.swaps_last_two();
  if (!before || !keeps_places)
    for (const auto& next : {before_unit_axes(node, walk, context.facts), before_regrouped_axes(node, walk, context)})
      if (next) return std::vector{*next};
  Value* merged = !before && !walk.split ? with_last_axes_merged(node, context) : nullptr;
  if (!before) {
    ATTN_OPT_MATCH(const ScoreWalk whole, settled(walk, context));
    if (auto ways = peel_split(node, whole, context)) {
      if (*ways && merged) (*ways)->push_back(step(walk, *merged, node.op() + "(axes)"));
      return *std::move(ways);
    }
  }
  if (merged) return std::vector{step(walk, *merged, node.op() + "(axes)")};
  Value* apart = (!before || !keeps_places) && !walk.split ? split_above(node, context) : nullptr;
  if (!apart && !before && !walk.split) apart = parted_above(node, context);
  if (apart) return std::vector{step(walk, *apart, "Reshape(product)")};
  Value* parted = (!before || !keeps_places) && !walk.split ? with_axes_parted(node, context) : nullptr;
  if (parted) return std::vector{step(walk, *parted, node.op() + "(axes)")};
  if (!before || !keeps_places)
    return missed("scores.reshape", &node,
                  shape_text(*node.inputs[0], context.facts) + " to " + shape_text(*node.outputs[0], context.facts),
                  walk.peeled);
  ScoreWalk next = step(walk, *before, node.op());
  next.frames.push_back(frame_at(node, walk, context));
  if (!walk.layout.order.empty()) next.layout = ScoreLayout::keys_by_queries(context.facts.shape(*before).known().size());
  return std::vector{std::move(next)};
}

Ways peel_transpose(Node& node, const ScoreWalk& walk, MatchContext& context) {
  const MaybeShape after = context.facts.shape(*node.outputs[0]);
  const std::vector<int64_t> perm = permutation(node, context.facts);
  if (Value* product = walk.split && walk.split->keeps_keys() ? turned_product(node, context) : nullptr)
    return std::vector{step(walk, *product, "Transpose")};
  if (!after || perm.size() != after->size() || walk.split)
    return missed("scores.transpose", &node, shape_text(*node.outputs[0], context.facts), walk.peeled);
  ScoreWalk next = step(walk, *node.inputs[0], "Transpose");
  next.layout = walk.layout.before_transpose(perm);
  return std::vector{std::move(next)};
}

/// b * tanh(f x)  =>  softcap * tanh(scale * x / softcap): a factor above it belongs to the cap, one inside to the scale. tanh
/// is odd: the sign of b is the scale's. A number that is added is the same for all keys.
Ways peel_softcap(Node& node, const TanhOf& tanh, const ScoreWalk& below, MatchContext& context) {
  ATTN_OPT_MATCH(const ScoreWalk walk, settled(below, context));
  if (!walk.tensor_scales.empty() || walk.softcap != 0 || walk.scale == 0)
    return missed("scores.softcap", &node, "scaled or capped again above", walk.peeled);
  if (walk.sinks && tanh.number != 0)
    return missed("scores.sinks", &node, "the scores are less by a number of their own, and the sinks are not", walk.peeled);
  ScoreWalk next = step(walk, *tanh.value, "softcap");
  next.softcap = std::abs(walk.scale * tanh.size);
  next.caps_in_exp_range = tanh.may_be_nan;
  next.sums_otherwise |= tanh.number != 0;
  next.scale = walk.scale * tanh.size * tanh.factor;
  return std::vector{std::move(next)};
}

Ways peel_tanh(Node& node, const ScoreWalk& walk, MatchContext& context) {
  const auto tanh = node.is("Tanh") ? std::optional(TanhOf{node.inputs[0]}) : tanh_in(*node.outputs[0], context.facts);
  if (!tanh) return missed("scores.operator", &node, node.op(), walk.peeled);
  return peel_softcap(node, *tanh, walk, context);
}

/// A maximum that is subtracted, what is not finite that is replaced, or a form of scores.
Ways peel_elementwise(Node& node, const ScoreWalk& walk, MatchContext& context) {
  if (node.is("Where"))
    if (auto ways = peel_replaced(node, walk, context)) return ways;
  auto lowered = peel_maximum(node, walk, context);
  if (lowered && !walk.sinks) return std::vector{*std::move(lowered)};
  // Numbers of rows that are made of no scores are a bias beside sinks.
  const auto is_made_of_scores = [&](const Value* input) {
    return input != lowered->value && is_made_of(*input, *lowered->value);
  };
  if (lowered && std::ranges::any_of(node.inputs, is_made_of_scores))
    return missed("scores.sinks", &node, "the scores are less by a number of their own, and the sinks are not", walk.peeled);
  if (const auto tanh = tanh_in(*node.outputs[0], context.facts)) return peel_softcap(node, *tanh, walk, context);
  if (node.is("Mul") && square_of_root(*node.outputs[0], context)) return peel_power(node, walk, context);
  return peel_form(node, walk, context);
}

/// What leaves some of the scores in their places.
Ways peel_laid_over(Node& node, const ScoreWalk& walk, MatchContext& context) {
  if (Value* sum = summed_in_place(node, context)) return std::vector{step(walk, *sum, node.op())};
  if (form_operands(node).empty() || !keeps_shape(*node.outputs[0], *node.inputs[0], context.facts))
    return missed("scores.operator", &node, node.op(), walk.peeled);
  return peel_form(node, walk, context);
}

}  // namespace

const std::vector<ScorePeel>& score_peels() {
  static const std::vector<ScorePeel> peels = {
      {"Cast", peel_cast},
      {"CastLike", peel_cast},
      {"Add", peel_elementwise},
      {"Sub", peel_elementwise},
      {"Sum", peel_elementwise},
      {"Mean", peel_elementwise},
      {"Neg", peel_elementwise},
      {"Where", peel_elementwise},
      {"Mul", peel_elementwise},
      {"Div", peel_elementwise},
      {"Max", peel_bound},
      {"Min", peel_bound},
      {"Clip", peel_bound},
      {"Reshape", peel_reshape},
      {"Squeeze", peel_reshape},
      {"Unsqueeze", peel_reshape},
      {"Flatten", peel_reshape},
      {"Transpose", peel_transpose},
      {"Concat", peel_concat},
      {"Pad", peel_padding},
      {"Conv", peel_convolution},  // of single points
      {"Tanh", peel_tanh},
      {"Sigmoid", peel_tanh},
      {"Reciprocal", peel_tanh},
      {"Log", peel_logarithm},
      {"LogSoftmax", peel_logarithm},
      {"Slice", peel_selection},
      {"Split", peel_selection},
      {"Gather", peel_selection},
      {"If", peel_branches},
      {"Pow", peel_power},
      {"ReduceSum", peel_squared_distance},
      {"ReduceSumSquare", peel_squared_distance},
      {"Trilu", peel_laid_over},
      {"ScatterND", peel_laid_over},
      {"ScatterElements", peel_laid_over},
  };
  return peels;
}

}  // namespace attn_opt
