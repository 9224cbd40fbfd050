// What may stand between the product of Q and K and the softmax.
//
//   Cast, CastLike          float to float            Reshape, Squeeze, Unsqueeze   of the leading axes
//   Add, Sub, Sum           a bias                    Transpose                     of the last two axes
//   Where                   a fill where not kept     Mul, Div                      scale: a number, or a tensor per
//   Mul(Tanh(x / a), b)     softcap                                                 head, query or key
//   Max, Clip               a floor below every score
#include <cmath>

#include "attn_opt/canonical.h"
#include "attn_opt/mask_contents.h"
#include "attn_opt/matcher.h"
#include "patterns/layout_checks.h"
#include "patterns/score_walk.h"

namespace attn_opt {
namespace {

using Ways = Matched<std::vector<ScoreWalk>>;

// A fill above this leaves a masked key some weight: the Where is no mask.
constexpr double kHighestMaskFill = -1000;

ScoreWalk step(const ScoreWalk& walk, Value& next, const std::string& what) {
  ScoreWalk after = walk;
  after.value = &next;
  after.peeled.push_back(what);
  return after;
}

/// True if an elementwise RESULT has the shape of its OPERAND: equal, or unequal only in sizes that are not both known.
bool keeps_shape(const Value& result, const Value& operand, Facts& facts) {
  const Shape* after = facts.shape(result);
  const Shape* before = facts.shape(operand);
  if (!after || !before || after->size() != before->size() || before->size() < 2) return false;
  for (size_t axis = 0; axis < after->size(); ++axis) {
    const Dim &was = (*before)[axis], &is = (*after)[axis];
    if (was == is) continue;
    if (was.is(1) || (was.is_constant() && is.is_constant())) return false;
  }
  return true;
}

std::string shape_text(const Value& value, Facts& facts) {
  const Shape* shape = facts.shape(value);
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
    way.terms.push_back({ScoreTerm::Kind::kBias, &canonical(bias, context.facts), sign * walk.scale, 0, *context.facts.shape(*node.outputs[0])});
    ways.push_back(std::move(way));
  }
  if (ways.empty())
    return missed("scores.enlarged", &node, "neither operand has the result's shape " + shape_text(*node.outputs[0], context.facts), walk.peeled);
  return ways;
}

Ways peel_where(Node& node, const ScoreWalk& walk, MatchContext& context) {
  if (walk.softcap != 0) return missed("scores.mask-below-softcap", &node, node.op(), walk.peeled);
  if (!walk.tensor_scales.empty()) return missed("scores.mask-below-tensor-scale", &node, node.op(), walk.peeled);
  std::vector<ScoreWalk> ways;
  std::string found = "no branch is a number";
  for (int scores : {1, 2}) {
    const auto fill = context.facts.uniform(*node.inputs[3 - scores]);
    if (!fill) continue;
    if (!(*fill <= kHighestMaskFill)) {
      found = "fill " + std::to_string(*fill) + " is no mask value";
      continue;
    }
    if (!keeps_shape(*node.outputs[0], *node.inputs[scores], context.facts)) {
      found = "the Where enlarges the scores to " + shape_text(*node.outputs[0], context.facts);
      continue;
    }
    const bool keep = scores == 1;
    ScoreWalk way = step(walk, *node.inputs[scores], keep ? "Where(keep)" : "Where(drop)");
    way.terms.push_back({keep ? ScoreTerm::Kind::kKeep : ScoreTerm::Kind::kDrop, &canonical(*node.inputs[0], context.facts), walk.scale, *fill,
                         *context.facts.shape(*node.outputs[0])});
    ways.push_back(std::move(way));
  }
  if (ways.empty()) return missed("scores.where", &node, found, walk.peeled);
  return ways;
}

/// Max(scores, lowest), or Clip from below: gives masks that add up to -inf a finite value.
Ways peel_floor(Node& node, const ScoreWalk& walk, MatchContext& context) {
  const bool clips = node.is("Clip");
  if (node.inputs.size() != 2 && !(clips && !node.input(2)))
    return missed("scores.floor", &node, "not two inputs", walk.peeled);
  if (walk.softcap != 0 || !walk.tensor_scales.empty() || walk.scale <= 0)
    return missed("scores.floor-below-scale", &node, node.op(), walk.peeled);
  const DataType type = context.facts.type(*node.outputs[0]);
  for (int scores : {0, 1}) {
    if (clips && scores == 1) break;
    Value* least = node.input(1 - scores);
    const auto number = least ? context.facts.uniform(*least) : std::nullopt;
    if (!number || !(*number <= absorbing_fill(type)) || !keeps_shape(*node.outputs[0], *node.inputs[scores], context.facts))
      continue;
    ScoreWalk next = step(walk, *node.inputs[scores], node.op() + "(floor)");
    next.terms.push_back({ScoreTerm::Kind::kFloor, least, walk.scale, *number, *context.facts.shape(*node.outputs[0])});
    return std::vector{std::move(next)};
  }
  return missed("scores.floor", &node, "no operand is a number below every score", walk.peeled);
}

Ways peel_reshape(Node& node, const ScoreWalk& walk, MatchContext& context) {
  Value* before = regrouped_from(node, context.facts);
  if (!before)
    return missed("scores.reshape", &node,
                  shape_text(*node.inputs[0], context.facts) + " to " + shape_text(*node.outputs[0], context.facts), walk.peeled);
  ScoreWalk next = step(walk, *before, node.op());
  next.frames.push_back(*context.facts.shape(*node.outputs[0]));
  return std::vector{std::move(next)};
}

Ways peel_transpose(Node& node, const ScoreWalk& walk, MatchContext& context) {
  Value* before = swapped_from(node, context.facts);
  if (!before || walk.transposed)
    return missed("scores.transpose", &node, "more than a swap of queries and keys right after their product", walk.peeled);
  ScoreWalk next = step(walk, *before, "Transpose");
  next.transposed = true;
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
  Value& factor = *node.inputs[1 - scores];
  const Shape* shape = context.facts.shape(factor);
  if (!shape || !keeps_shape(*node.outputs[0], *node.inputs[scores], context.facts))
    return missed("scores.scale-shape", &node, shape_text(factor, context.facts), walk.peeled);
  const bool on_query = shape->empty() || shape->back().is(1);
  const bool on_key = shape->size() == 1 || (shape->size() >= 2 && (*shape)[shape->size() - 2].is(1));
  if (!on_query && !on_key) return missed("scores.scale-per-score", &node, to_string(*shape), walk.peeled);
  ScoreWalk next = step(walk, *node.inputs[scores], node.op() + (on_query ? "(query scale)" : "(key scale)"));
  next.tensor_scales.push_back({&factor, node.is("Div"), !on_query, *context.facts.shape(*node.outputs[0])});
  return next;
}

Ways peel_scale(Node& node, const ScoreWalk& walk, MatchContext& context) {
  if (auto softcap = peel_softcap(node, walk, context)) return *softcap;
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
    else
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
      {"Max", peel_floor},       {"Clip", peel_floor},
  };
  return peels;
}

}  // namespace attn_opt
