#include "patterns/scores/score_bounds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "attn_opt/canonical.h"
#include "attn_opt/internal/mask_contents.h"
#include "attn_opt/matcher.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/products/products.h"
#include "patterns/products/squared_distance.h"
#include "patterns/readers.h"
#include "patterns/scores/conditions.h"
#include "patterns/scores/form_reader.h"
#include "patterns/scores/peel_form.h"
#include "patterns/softmax/exponentials.h"
#include "patterns/softmax/row_reduction.h"
#include "patterns/softmax/softmax_anchor.h"

namespace attn_opt {
namespace {

struct Bounds {
  Value* scores = nullptr;
  Value* least_value = nullptr;  ///< null: an attribute
  std::optional<double> least, most;
  bool replaces_nan = false;
};

/// Nullopt if NODE bounds by something that is no number.
std::optional<Bounds> bounds_of(Node& node, Facts& facts) {
  Bounds bounds;
  bounds.scores = node.inputs[0];
  if (node.is("Clip")) {
    bounds.least = clip_bound(node, 1, facts);
    bounds.most = clip_bound(node, 2, facts);
    bounds.least_value = node.input(1);
    return bounds.least && bounds.most ? std::optional(bounds) : std::nullopt;
  }
  for (const size_t scores : {0, 1}) {
    Value& other = *node.inputs[1 - scores];
    const auto number = facts.uniform(other);
    if (!number || !keeps_shape(*node.outputs[0], *node.inputs[scores], facts)) continue;
    bounds.scores = node.inputs[scores];
    (node.is("Max") ? bounds.least : bounds.most) = number;
    if (node.is("Max")) bounds.least_value = &other;
    return bounds;
  }
  return std::nullopt;
}

constexpr int kMostReplaced = 3;

std::optional<Bounds> bounds_of_choice(const Node& node, int replaced_before, Facts& facts);

/// True if SCORES are TESTED, or that with what is not finite replaced so often BEFORE at most: nothing else is infinite in one
/// of them alone.
bool is_replaced_of(Value& scores, Value& tested, int before, Facts& facts) {
  if (&before_float_casts(tested, facts) == &before_float_casts(scores, facts)) return true;
  const Node* choice = before > 0 ? canonical(scores, facts).producer : nullptr;
  const auto replaced = choice && choice->is("Where") ? bounds_of_choice(*choice, before - 1, facts) : std::nullopt;
  return replaced && is_replaced_of(*replaced->scores, tested, before - 1, facts);
}

/// What NODE, a Where, puts in the place of what is not finite of one operand, which is there bounded by it, and NaN no score;
/// nullopt if it may replace others.
///
///   Where(IsNaN(x), 0, x)  =>  x        Where(x == -Inf, f, x)  =>  Max(x, f)        Where(x == Inf, f, x)  =>  Min(x, Inf)
std::optional<Bounds> bounds_of_choice(const Node& node, int replaced_before, Facts& facts) {
  constexpr size_t kHeld = 1, kOtherwise = 2;
  for (const size_t kept : {kHeld, kOtherwise}) {
    Value *scores = node.inputs[kept], *other = node.inputs[kHeld + kOtherwise - kept];
    const auto number = facts.uniform(*other);
    const auto replaced = number ? not_finite_where({node.inputs[0], kept == kOtherwise}, facts) : std::nullopt;
    if (!replaced || !is_replaced_of(*scores, *replaced->value, replaced_before, facts)) continue;
    Bounds bounds{scores, other, {}, {}, replaced->kind == NotFinite::Kind::kNaN};
    if (replaced->kind == NotFinite::Kind::kInfinity || !keeps_shape(*node.outputs[0], *scores, facts)) return std::nullopt;
    if (replaced->kind == NotFinite::Kind::kPositive) bounds.most = std::numeric_limits<double>::max();
    if (replaced->kind == NotFinite::Kind::kNegative) bounds.least = number;
    const bool is_fill = !bounds.least || *bounds.least <= kHighestMaskFill;
    return is_fill ? std::optional(bounds) : std::nullopt;
  }
  return std::nullopt;
}

/// The smallest size at which a score is clamped, by a bound that is not beyond all numbers of the scores.
std::optional<double> clamp_of(const Bounds& bounds, double absorbing) {
  std::optional<double> clamp;
  if (bounds.least && !(*bounds.least <= absorbing)) clamp = -*bounds.least;
  if (bounds.most && !(-*bounds.most <= absorbing)) clamp = clamp ? std::min(*clamp, *bounds.most) : *bounds.most;
  return clamp;
}

bool hides_infinity(const Bounds& bounds) {
  return bounds.replaces_nan || (bounds.least && std::isfinite(*bounds.least)) || (bounds.most && std::isfinite(*bounds.most));
}

/// A lowest number that scores have at least.
Matched<ScoreTerm> floor_term(const Bounds& bounds, Node& node, const ScoreWalk& walk, MatchContext& context) {
  if (!context.facts.shape(*node.outputs[0]))
    return missed("product.unknown-rank", &node, "the rank of the scores is not known", walk.peeled);
  Value* value = bounds.least_value;
  if (!value) value = InnerValues(node, context).build().scalar(*bounds.least, context.facts.type(*node.outputs[0]));
  ATTN_OPT_MATCH(Value * least, placed_term(*value, node, walk, context));
  return ScoreTerm{ScoreTerm::Kind::kFloor, least, walk.scale, *bounds.least, frame_at(node, walk, context)};
}

/// True if VALUE, which is subtracted from SCORES of LAYOUT, is one number for all keys of a row.
bool is_one_for_all_keys(const Value& value, const Value& scores, const ScoreLayout& layout, Facts& facts) {
  const MaybeShape own = facts.shape(value), whole = facts.shape(scores);
  if (!own || !whole || own->size() > whole->size()) return false;
  const size_t keys = layout.order.empty() ? whole->size() - 1 : static_cast<size_t>(layout.order.back());
  const size_t absent = whole->size() - own->size();
  return keys < absent || (*own)[keys - absent].is(1);
}

constexpr std::array kReductions = {"ReduceMax", "ReduceMin", "ReduceMean", "ReduceLogSumExp"};

bool reduces(const Node& node) {
  return node.input(0) && std::ranges::any_of(kReductions, [&](const char* op_type) { return node.is(op_type); });
}

/// What reduces SCORES, or what they are cast from or to, to NUMBER; null if nothing does.
const Node* reduction_of(Value& scores, Value& number, Facts& facts) {
  const Node* node = before_float_casts(number, facts).producer;
  const bool is_reduced =
      node && reduces(*node) && &before_float_casts(*node->inputs[0], facts) == &before_float_casts(scores, facts);
  return is_reduced ? node : nullptr;
}

constexpr int kMaxAboveQueries = 8;

/// What VALUE is moved from, or a number times.
Value* one_step_up(const Value& value, Facts& facts) {
  const Node* node = value.producer;
  if (!node || value.output != 0 || !node->input(0)) return nullptr;
  const bool is_scaled = has(*node, Trait::kMultiplies) && node->input(1);
  if (is_scaled && facts.uniform(*node->inputs[1])) return node->inputs[0];
  if (is_scaled && node->is("Mul") && facts.uniform(*node->inputs[0])) return node->inputs[1];
  return has(*node, Trait::kKeepsAll) ? node->inputs[0] : nullptr;
}

/// True if OPERAND of a product is made of BASE by moves and numbers alone.
bool is_moved_from(Value& operand, const Value& base, Facts& facts) {
  Value* seen = &operand;
  for (int step = 0; step < kMaxAboveQueries && seen; ++step) {
    seen = &canonical(*seen, facts);
    if (seen == &base) return true;
    seen = one_step_up(*seen, facts);
  }
  return false;
}

/// True if NODE adds up the squares or sizes of an operand of the product that SCORES are made of: |q|^2 of a distance.
///
///   |q - k|^2 = |q|^2 - 2 q k + |k|^2
bool is_norm_of_operand(const Node& node, Value& scores, Facts& facts) {
  const bool squares = node.is("ReduceSumSquare") || node.is("ReduceL2");
  if (!node.input(0) || (!squares && !node.is("ReduceSum"))) return false;
  const Value* base = squares ? &canonical(*node.inputs[0], facts) : root_of_square(*node.inputs[0], facts);
  if (!base) return false;
  const auto is_made = [&](Value& value) { return value.producer && is_product(*value.producer); };
  const Value* product = nearest_source(scores, is_made, facts);
  return product && std::ranges::any_of(product->producer->inputs,
                                        [&](Value* operand) { return operand && is_moved_from(*operand, *base, facts); });
}

/// True if a product that ONE is made of is one that OTHER is made of.
bool share_product(Value& one, Value& other, Facts& facts) {
  const auto is_of_other = [&](const Node& product) {
    return may_be_scores(other, [&](const Node& own) { return &own == &product; }, facts);
  };
  return may_be_scores(one, is_of_other, facts);
}

/// The reduction that VALUE is moved from, or a number times; null if there is none.
const Node* reduction_above(Value& value, Facts& facts) {
  Value* seen = &value;
  for (int step = 0; step < kMaxAboveQueries && seen; ++step) {
    seen = &before_float_casts(*seen, facts);
    if (seen->producer && reduces(*seen->producer)) return seen->producer;
    seen = one_step_up(*seen, facts);
  }
  return nullptr;
}

/// True if VALUE is a number times a reduction of what SCORES are made of, or of what else their product makes, moved or not:
/// of whatever row a number is, a softmax does not see it.
bool is_made_of_reduction(Value& value, Value& scores, Facts& facts) {
  const Node* node = before_float_casts(value, facts).producer;
  if (node && is_norm_of_operand(*node, scores, facts)) return true;
  const Node* reduction = reduction_above(value, facts);
  if (!reduction) return false;
  Value* reduced = &canonical(*reduction->inputs[0], facts);
  return share_product(*reduced, scores, facts) ||
         nearest_source(scores, [&](Value& source) { return &source == reduced; }, facts) != nullptr;
}

/// True if NUMBER, one for all keys of a row, adds up nothing but what is_made_of_reduction() of SCORES.
bool is_made_of_reductions(Value& scores, Value& number, Facts& facts) {
  return std::ranges::all_of(FormReader(facts, true).linear_terms(number),
                             [&](const Addend& addend) { return is_made_of_reduction(*addend.value, scores, facts); });
}

/// The mask that SUM, which is added to SCORES of LAYOUT, adds up beside what is one number for all keys of a row, made of
/// reductions of them; null if there is no such number, or anything else: a bias may be so large that the number is lost in it.
Value* beside_row_numbers(Value& sum, Value& scores, const ScoreLayout& layout, Node& node, MatchContext& context) {
  Facts& facts = context.facts;
  if (!sum.producer || !has(*sum.producer, Trait::kAdds)) return nullptr;
  std::vector<Addend> terms = FormReader(facts, true).linear_terms(sum);
  const size_t all = terms.size();
  std::erase_if(terms, [&](const Addend& addend) {
    return is_one_for_all_keys(*addend.value, scores, layout, facts) && is_made_of_reduction(*addend.value, scores, facts);
  });
  FormReader reader(node, context);
  const auto is_mask = [&](const Addend& addend) { return reader.numbers(*addend.value).has_value(); };
  if (terms.empty() || terms.size() == all || !std::ranges::all_of(terms, is_mask)) return nullptr;
  InnerValues inner(node, context);
  Value* rest = nullptr;
  for (const Addend& addend : terms) {
    Value* own = inner.scaled(addend.value, addend.coefficient);
    rest = rest ? inner.sum(rest, own) : own;
  }
  return rest;
}

/// A number for each row of scores, or for more of them, that it is made of.
struct RowNumber {
  std::string op_type;
  bool is_of_row = true;       ///< and not of several
  const Node* node = nullptr;  ///< that makes it; null if it is moved or repeated from there
};

/// NUMBER, which broadcasts to SCORES of LAYOUT, if it is one of SCORES for all keys of a row.
std::optional<RowNumber> row_number(Value& scores, Value& number, const ScoreLayout& layout, Facts& facts) {
  const Node* node = reduction_of(scores, number, facts);
  if (node && is_one_for_all_keys(number, scores, layout, facts))
    return RowNumber{node->op(), layout.order.empty() && reduced_over_last(node->op(), any())(*node->outputs[0], facts), node};
  const MaybeShape shape = facts.shape(scores);
  if (!shape || shape->empty()) return std::nullopt;
  const size_t keys = layout.order.empty() ? 0 : shape->size() - 1 - static_cast<size_t>(layout.order.back());
  for (const char* op_type : kReductions)
    if (reduced_axis_of(op_type, number, scores, facts) == keys) return RowNumber{op_type};
  const bool is_other = is_one_for_all_keys(number, scores, layout, facts) && is_made_of_reductions(scores, number, facts);
  return is_other ? std::optional(RowNumber{}) : std::nullopt;
}

/// True if SCORES are read by LOWERING and MAXIMUM alone, and what MAXIMUM makes by LOWERING.
bool is_read_by(Value& scores, const Node& lowering, const Node& maximum, Facts& facts) {
  const Readers readers = readers_of(canonical(scores, facts), facts), of_maximum = readers_of(*maximum.outputs[0], facts);
  const auto is_lowering = [&](const Reader& reader) { return reader.node == &lowering; };
  const auto is_known = [&](const Reader& reader) { return is_lowering(reader) || reader.node == &maximum; };
  return !readers.is_output && !of_maximum.is_output && std::ranges::all_of(readers.all, is_known) &&
         std::ranges::all_of(of_maximum.all, is_lowering);
}

/// Min(a, b, c)  =>  Min(Min(a, b), c)
Value* by_twos(Node& node, MatchContext& context) {
  InnerValues inner(node, context);
  Value* made = node.inputs[0];
  for (size_t i = 1; i < node.inputs.size(); ++i) made = inner.build().node(node.op(), {made, node.inputs[i]});
  return made;
}

/// -Max(a, b)  =>  Min(-a, -b), and the reverse: WALK, which turns the sign of what NODE makes.
ScoreWalk with_sign_inside(Node& node, const ScoreWalk& walk, MatchContext& context) {
  InnerValues inner(node, context);
  std::vector<Value*> turned;
  for (Value* input : node.inputs) turned.push_back(inner.build().node("Neg", {input}));
  ScoreWalk next = step(walk, *inner.build().node(node.is("Max") ? "Min" : "Max", turned), node.op() + "(-1)");
  next.scale = -walk.scale;
  return next;
}

/// What NODE holds logarithms of a softmax over the keys of, or of the exponentials of; null if it does not.
Value* before_logarithm(Node& node, const ScoreWalk& walk, MatchContext& context) {
  const MaybeShape shape = context.facts.shape(*node.outputs[0]);
  Node* maker = node.is("LogSoftmax") ? &node : canonical(*node.inputs[0], context.facts).producer;
  if (!shape || !maker) return nullptr;
  if (Value* exponent = maker != &node ? exponent_of(*node.inputs[0], node, context) : nullptr) return exponent;
  const auto softmax = node.is("LogSoftmax") ? softmax_operator(node, context) : softmax_at(*maker, context);
  const bool is_whole =
      softmax && !softmax->divided && softmax->weights.size() == 1 && softmax->sinks.empty() && !softmax->cut_off;
  const auto keys = shape->size() - 1 - static_cast<size_t>(axis_of_keys(walk, shape->size()));
  return is_whole && softmax->keys == keys ? softmax->input : nullptr;
}

/// The scores that NODE bounds as BOUNDS say.
Ways bounded_by(const Bounds& bounds, Node& node, const ScoreWalk& walk, MatchContext& context) {
  const double absorbing = absorbing_fill(context.facts.type(*node.outputs[0]));
  const bool has_floor = bounds.least && std::isfinite(*bounds.least) && *bounds.least <= absorbing;
  const auto clamp = clamp_of(bounds, absorbing);
  if (!has_floor && !clamp) {
    ScoreWalk next = step(walk, *bounds.scores, node.op() + "(nothing)");
    next.hides_infinity |= hides_infinity(bounds);
    return std::vector{std::move(next)};
  }
  if (walk.softcap != 0 || !walk.tensor_scales.empty() || (has_floor && walk.scale <= 0))
    return missed("scores.floor-below-scale", &node, node.op(), walk.peeled);
  if (clamp && !(*clamp * std::abs(walk.scale) >= -kHighestMaskFill))
    return missed("scores.floor", &node, "scores may reach " + std::to_string(*clamp), walk.peeled);
  ScoreWalk next = step(walk, *bounds.scores, node.op() + (clamp ? "(clamp)" : "(floor)"));
  next.hides_infinity |= !clamp && hides_infinity(bounds);
  if (has_floor) {
    ATTN_OPT_MATCH(auto term, floor_term(bounds, node, walk, context));
    next.terms.push_back(std::move(term));
    ++next.changes;
  }
  if (clamp) next.clamp_at(*clamp * std::abs(walk.scale));
  return std::vector{std::move(next)};
}

}  // namespace

/// Log(Softmax(x))  =>  x - a number for each row, which a softmax does not see      Log(Exp(x))  =>  x
Ways peel_logarithm(Node& node, const ScoreWalk& walk, MatchContext& context) {
  Value* scores = walk.changes_row_numbers() ? nullptr : before_logarithm(node, walk, context);
  if (!scores) return missed("scores.operator", &node, node.op(), walk.peeled);
  if (walk.sinks)
    return missed("scores.sinks", &node, "the scores are less by a number of their own, and the sinks are not", walk.peeled);
  ScoreWalk next = step(walk, *scores, node.op() + "(row number)");
  next.lower();
  next.leaves_exp_range |= node.is("Log");
  next.read.clear();
  return std::vector{std::move(next)};
}

Ways peel_bound(Node& node, const ScoreWalk& below, MatchContext& context) {
  ATTN_OPT_MATCH(const ScoreWalk walk, settled(below, context));
  if (!node.is("Clip") && node.inputs.size() > 2) return std::vector{step(walk, *by_twos(node, context), node.op())};
  if (!node.is("Clip") && node.inputs.size() != 2) return missed("scores.floor", &node, "not two inputs", walk.peeled);
  const auto bounds = bounds_of(node, context.facts);
  if (!bounds && node.is("Min"))
    if (auto ways = peel_form(node, walk, context)) return ways;
  if (!bounds && walk.scale < 0) return std::vector{with_sign_inside(node, walk, context)};
  if (!bounds) return missed("scores.floor", &node, "scores are bounded by something that is no number", walk.peeled);
  return bounded_by(*bounds, node, walk, context);
}

Ways peel_replaced(Node& node, const ScoreWalk& below, MatchContext& context) {
  const auto bounds = bounds_of_choice(node, kMostReplaced, context.facts);
  if (!bounds) return missed("scores.operator", &node, node.op(), below.peeled);
  ATTN_OPT_MATCH(const ScoreWalk walk, settled(below, context));
  return bounded_by(*bounds, node, walk, context);
}

std::optional<ScoreWalk> peel_maximum(Node& node, const ScoreWalk& walk, MatchContext& context) {
  const bool is_scaled_by_key = std::ranges::any_of(walk.tensor_scales, &TensorScale::on_key);
  if (!(node.is("Sub") || node.is("Add")) || node.inputs.size() != 2 || (walk.split && !walk.split->keeps_keys()) ||
      walk.softcap != 0 || is_scaled_by_key)
    return std::nullopt;
  for (const size_t operand : {0, 1}) {
    Value *scores = node.inputs[operand], *lowered_by = node.inputs[1 - operand];
    if (!keeps_shape(*node.outputs[0], *scores, context.facts)) continue;
    const auto number = row_number(*scores, *lowered_by, walk.layout, context.facts);
    Value* rest = number ? nullptr : beside_row_numbers(*lowered_by, *scores, walk.layout, node, context);
    if (rest) {
      Value* lowered = InnerValues(node, context).again(node, 1 - operand, rest);
      ScoreWalk next = step(walk, *lowered, node.op() + "(row number)");
      next.lower();
      next.makes_nan_of_infinity = true;
      next.read.clear();
      return next;
    }
    if (!number) continue;
    const char* of_row = number->is_of_row ? "row " : "";
    ScoreWalk next = step(walk, *scores, node.op() + "(" + of_row + (number->op_type == "ReduceMax" ? "maximum)" : "number)"));
    if (operand == 1 && node.is("Sub")) {
      auto turned = substituted(walk.form, product(number_form(-1), core_form()).value());
      if (!turned) return std::nullopt;
      next.form = *std::move(turned);
    }
    next.lower();
    // The maximum of a row that has a key is finite; other numbers of the row are not where a score is -Inf.
    const bool is_of_one_key = number->op_type == "ReduceMax" || number->op_type == "ReduceLogSumExp";
    next.makes_nan_of_infinity |= node.is("Add") || !is_of_one_key;
    next.lowered_by_largest_of_all = walk.lowered_by_largest_of_all || !number->is_of_row;
    if (number->node && is_read_by(*scores, node, *number->node, context.facts))
      next.lowered_value = &canonical(*scores, context.facts);
    next.read.clear();
    return next;
  }
  return std::nullopt;
}

}  // namespace attn_opt
