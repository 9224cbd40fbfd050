// What may stand between the product of Q and K and the softmax.
//
//   Cast, CastLike          float to float            Reshape, Squeeze, Unsqueeze   of the leading axes
//   Add, Sub, Sum           a bias                    Transpose
//   Where                   a fill where not kept     Mul, Div                      scale: a number, or a tensor per
//   Mul(Tanh(x / a), b)     softcap                                                 head, query or key
//   Max, Min, Clip          a floor or clamp          Sub                           of their maximum (score_bounds.h)
//   Concat                  sinks (sinks.h)
#include <cmath>

#include "attn_opt/canonical.h"
#include "attn_opt/matcher.h"
#include "patterns/layout_checks.h"
#include "patterns/peel_steps.h"
#include "patterns/score_bounds.h"
#include "patterns/selection.h"
#include "patterns/zero_one_mask.h"
#include "src/io/number_text.h"

namespace attn_opt {
namespace {

std::string shape_text(const Value& value, Facts& facts) {
  const MaybeShape shape = facts.shape(value);
  return shape ? to_string(*shape) : "unknown rank";
}

Ways peel_cast(Node& node, const ScoreWalk& walk, MatchContext& context) {
  if (!is_floating(context.facts.type(*node.inputs[0])) || !is_floating(context.facts.type(*node.outputs[0])))
    return missed("scores.cast", &node, "from or to a type that is not floating", walk.peeled);
  return std::vector{step(walk, *node.inputs[0], node.op())};
}

Ways peel_bias(Node& node, const ScoreWalk& walk, MatchContext& context) {
  if (node.inputs.size() != 2) return missed("scores.sum-of-many", &node, std::to_string(node.inputs.size()) + " inputs", walk.peeled);
  if (walk.softcap != 0) return missed("scores.bias-below-softcap", &node, node.op(), walk.peeled);
  if (!walk.tensor_scales.empty()) return missed("scores.bias-below-tensor-scale", &node, node.op(), walk.peeled);
  if (auto lowered = peel_maximum(node, walk, context)) return std::vector{*std::move(lowered)};
  if (Value* selected = selected_by_sum(node, walk, context)) return std::vector{step(walk, *selected, "Add(selection)")};
  std::vector<ScoreWalk> ways;
  for (int scores : {0, 1}) {
    if (node.is("Sub") && scores == 1) break;
    Value &next = *node.inputs[scores], &bias = canonical(*node.inputs[1 - scores], context.facts);
    if (!keeps_shape(*node.outputs[0], next, context.facts)) continue;
    if (context.facts.uniform(bias) == 0.0) {
      ways.push_back(step(walk, next, "Add(0)"));
      continue;
    }
    ScoreWalk way = step(walk, next, node.op() + "(bias)");
    const double sign = node.is("Sub") ? -1 : 1;
    ATTN_OPT_MATCH(Value * term, placed_term(bias, node, walk, context));
    way.terms.push_back({ScoreTerm::Kind::kBias, term, sign * walk.scale, 0, frame_at(node, walk, context)});
    ways.push_back(std::move(way));
  }
  if (ways.empty())
    return missed("scores.enlarged", &node, "neither operand has the result's shape " + shape_text(*node.outputs[0], context.facts), walk.peeled);
  return ways;
}

Ways peel_where(Node& node, const ScoreWalk& walk, MatchContext& context) {
  if (walk.softcap != 0) return missed("scores.mask-below-softcap", &node, node.op(), walk.peeled);
  if (!walk.tensor_scales.empty()) return missed("scores.mask-below-tensor-scale", &node, node.op(), walk.peeled);
  if (auto shifted = peel_shifted_scores(node, walk, context)) return *std::move(shifted);
  std::vector<ScoreWalk> ways;
  std::string found = "no branch is a number";
  for (int scores : {1, 2}) {
    const auto fill = context.facts.uniform(*node.inputs[3 - scores]);
    if (!fill) continue;
    if (!(*fill <= kHighestMaskFill)) {
      found = "fill " + number_text(*fill) + " is no mask value";
      continue;
    }
    if (!keeps_shape(*node.outputs[0], *node.inputs[scores], context.facts)) {
      found = "the Where enlarges the scores to " + shape_text(*node.outputs[0], context.facts);
      continue;
    }
    const bool keep = scores == 1;
    ScoreWalk way = step(walk, *node.inputs[scores], keep ? "Where(keep)" : "Where(drop)");
    ATTN_OPT_MATCH(Value * mask, placed_term(*node.inputs[0], node, walk, context));
    way.terms.push_back({keep ? ScoreTerm::Kind::kKeep : ScoreTerm::Kind::kDrop, mask, walk.scale, *fill, frame_at(node, walk, context)});
    ways.push_back(std::move(way));
  }
  if (ways.empty()) return missed("scores.where", &node, found, walk.peeled);
  return ways;
}

/// A Reshape that splits queries and keys, or joins them again above what splits them.
std::optional<Ways> peel_split(Node& node, const ScoreWalk& walk, MatchContext& context) {
  if (walk.split) {
    Value* before = walk.split->whole_above(*node.inputs[0], context.facts);
    if (!before) return std::nullopt;
    ScoreWalk next = step(walk, *before, "Reshape(split)");
    auto terms = merged_terms(*walk.split, walk.terms, node, context);
    if (!terms) return tl::unexpected<Miss>(terms.error());
    next.terms = *std::move(terms);
    if (context.facts.shape(*before).known() != walk.split->merged) next.frames.push_back(walk.split->merged);
    next.split.reset();
    return Ways(std::vector{std::move(next)});
  }
  auto split = split_below(node, context.facts);
  if (!split || !walk.layout.order.empty()) return std::nullopt;
  ScoreWalk next = step(walk, *split->source, "Reshape(merged)");
  if (split->regroups(context.facts)) next.frames.push_back(frame_at(node, walk, context));
  next.split = std::move(split);
  next.split->first_term = walk.terms.size();
  return Ways(std::vector{std::move(next)});
}

Ways peel_reshape(Node& node, const ScoreWalk& walk, MatchContext& context) {
  Value* before = walk.split ? nullptr : regrouped_from(node, context.facts);
  const bool keeps_places = walk.layout.order.empty() || walk.layout.swaps_last_two();
  if (!before)
    if (auto ways = peel_split(node, walk, context)) return *std::move(ways);
  if (!before || !keeps_places)
    return missed("scores.reshape", &node,
                  shape_text(*node.inputs[0], context.facts) + " to " + shape_text(*node.outputs[0], context.facts), walk.peeled);
  ScoreWalk next = step(walk, *before, node.op());
  next.frames.push_back(frame_at(node, walk, context));
  if (!walk.layout.order.empty()) next.layout = ScoreLayout::keys_by_queries(context.facts.shape(*before).known().size());
  return std::vector{std::move(next)};
}

Ways peel_transpose(Node& node, const ScoreWalk& walk, MatchContext& context) {
  const MaybeShape after = context.facts.shape(*node.outputs[0]);
  const auto* perm = node.ints_attribute("perm");
  if (!after || !perm || std::ssize(*perm) != std::ssize(*after) || walk.split)
    return missed("scores.transpose", &node, shape_text(*node.outputs[0], context.facts), walk.peeled);
  ScoreWalk next = step(walk, *node.inputs[0], "Transpose");
  next.layout = walk.layout.before_transpose({perm->begin(), perm->end()});
  return std::vector{std::move(next)};
}

/// Mul(Tanh(x), b), or Div(Tanh(x), 1 / b): softcap * tanh(scale * x / softcap). A factor above it belongs to the cap, one inside to the scale.
std::optional<Ways> peel_softcap(Node& node, const ScoreWalk& walk, MatchContext& context) {
  Value* inside = nullptr;
  double factor = 0;
  const Matcher tanh = op("Tanh", {any(&inside)});
  if (op("Div", {tanh, number(&factor)})(*node.outputs[0], context.facts)) factor = 1 / factor;
  else if (!commuted("Mul", tanh, number(&factor))(*node.outputs[0], context.facts)) return std::nullopt;
  if (!walk.tensor_scales.empty() || walk.softcap != 0 || factor * walk.scale <= 0)
    return missed("scores.softcap", &node, "scaled or capped again above", walk.peeled);
  ScoreWalk next = step(walk, *inside, "softcap");
  next.softcap = factor * walk.scale;
  next.scale = next.softcap;
  return Ways(std::vector{std::move(next)});
}

/// Scores times a tensor: (..., L or 1, 1) scales queries, (..., 1, S) keys.
Matched<ScoreWalk> scaled_by_tensor(Node& node, int scores, const ScoreWalk& walk, MatchContext& context) {
  ATTN_OPT_MATCH(Value * factor, placed_term(*node.inputs[1 - scores], node, walk, context));
  const MaybeShape shape = context.facts.shape(*factor);
  if (!shape || !keeps_shape(*node.outputs[0], *node.inputs[scores], context.facts))
    return missed("scores.scale-shape", &node, shape_text(*factor, context.facts), walk.peeled);
  if (walk.split) return missed("scores.reshape", &node, "a factor of scores whose queries and keys are split", walk.peeled);
  const bool on_query = shape->empty() || shape->back().is(1);
  const bool on_key = shape->size() == 1 || (shape->size() >= 2 && (*shape)[shape->size() - 2].is(1));
  if (!on_query && !on_key) return missed("scores.scale-per-score", &node, to_string(*shape), walk.peeled);
  ScoreWalk next = step(walk, *node.inputs[scores], node.op() + (on_query ? "(query scale)" : "(key scale)"));
  next.tensor_scales.push_back({factor, node.is("Div"), !on_query, frame_at(node, walk, context)});
  return next;
}

/// Scores times a mask of ones and zeros, for which a number was added where it is 0.
std::optional<Ways> peel_zero_one_mask(Node& node, const ScoreWalk& walk, MatchContext& context) {
  const bool lies_straight = walk.layout.order.empty() && !walk.split;
  if (!node.is("Mul") || !lies_straight || walk.softcap != 0 || !walk.tensor_scales.empty()) return std::nullopt;
  for (int scores : {0, 1}) {
    if (!keeps_shape(*node.outputs[0], *node.inputs[scores], context.facts)) continue;
    auto mask = masked_by_factor(*node.inputs[1 - scores], walk.terms, node, context);
    if (!mask || !(mask->terms.back().coefficient * mask->terms.back().fill <= kHighestMaskFill)) continue;
    ScoreWalk next = step(walk, *node.inputs[scores], "Mul(keep)");
    next.terms = std::move(mask->terms);
    next.scale = walk.scale * mask->number;
    return Ways(std::vector{std::move(next)});
  }
  return std::nullopt;
}

/// Sinks beside the scores, of what is cut off behind the softmax.
Ways peel_sinks(Node& node, const ScoreWalk& walk, MatchContext& context) {
  if (!walk.cut_off || walk.sinks || node.inputs.size() != 2) return missed("scores.operator", &node, node.op(), walk.peeled);
  const MaybeShape after = context.facts.shape(*node.outputs[0]);
  const int64_t axis = node.int_attribute("axis", 0);
  Value &sinks = *node.inputs[walk.cut_off->in_front ? 0 : 1], &scores = *node.inputs[walk.cut_off->in_front ? 1 : 0];
  const MaybeShape shape = context.facts.shape(sinks);
  const bool is_last = after && (axis == -1 || axis == std::ssize(*after) - 1);
  if (!is_last || !shape || shape->back() != walk.cut_off->count)
    return missed("scores.sinks", &node, shape_text(sinks, context.facts) + " beside the scores", walk.peeled);
  const bool is_plain = walk.softcap == 0 && walk.tensor_scales.empty() && !walk.clamp;
  if (!is_plain || !walk.layout.order.empty() || walk.split || !walk.frames.empty())
    return missed("scores.sinks", &node, "scores and sinks are changed together", walk.peeled);
  ScoreWalk next = step(walk, scores, "Concat(sinks)");
  next.sinks = {&sinks, *walk.cut_off, walk.scale, walk.terms.size()};
  return std::vector{std::move(next)};
}

Ways peel_scale(Node& node, const ScoreWalk& walk, MatchContext& context) {
  if (auto softcap = peel_softcap(node, walk, context)) return *softcap;
  if (auto masked = peel_zero_one_mask(node, walk, context)) return *masked;
  std::vector<ScoreWalk> ways;
  Miss miss;
  for (int scores : {0, 1}) {
    if (node.is("Div") && scores == 1) break;
    const auto factor = context.facts.uniform(*node.inputs[1 - scores]);
    if (factor && *factor != 0 && std::isfinite(*factor) && keeps_shape(*node.outputs[0], *node.inputs[scores], context.facts)) {
      ScoreWalk next = step(walk, *node.inputs[scores], node.op() + "(scale)");
      next.scale = node.is("Div") ? walk.scale / *factor : walk.scale * *factor;
      return std::vector{std::move(next)};
    }
    auto way = scaled_by_tensor(node, scores, walk, context);
    if (way)
      ways.push_back(std::move(*way));
    else if (miss.id != "scores.scale-per-score")
      miss = way.error();
  }
  if (ways.empty()) return tl::unexpected<Miss>(miss);
  return ways;
}

}  // namespace

const std::vector<ScorePeel>& score_peels() {
  static const std::vector<ScorePeel> peels = {
      {"Cast", peel_cast},       {"CastLike", peel_cast},   {"Add", peel_bias},       {"Sub", peel_bias},
      {"Sum", peel_bias},        {"Where", peel_where},     {"Reshape", peel_reshape}, {"Squeeze", peel_reshape},
      {"Unsqueeze", peel_reshape}, {"Transpose", peel_transpose}, {"Mul", peel_scale}, {"Div", peel_scale},
      {"Max", peel_bound},       {"Min", peel_bound},       {"Clip", peel_bound},     {"Concat", peel_sinks},
  };
  return peels;
}

}  // namespace attn_opt
