#include "patterns/scores/peel_form.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "attn_opt/canonical.h"
#include "attn_opt/internal/mask_contents.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/layout_checks.h"
#include "patterns/products/joined_product.h"
#include "patterns/products/product_equation.h"
#include "patterns/products/products.h"
#include "patterns/products/squared_distance.h"
#include "patterns/scaled_values.h"
#include "patterns/scores/form_reader.h"

namespace attn_opt {
namespace {

/// Nodes looked at for a product.
constexpr size_t kMaxSearched = 64;
/// Nodes between a product and scores that are enlarged.
constexpr int kMaxExpanded = 8;

/// True for what may stand between a product and scores.
bool may_carry_scores(const Node& node) {
  constexpr std::array kOthers = {"CastLike", "Clip", "Tanh", "Concat",  "Dropout", "Log",   "LogSoftmax",
                                  "Softmax",  "Exp",  "Pow",  "Sigmoid", "Slice",   "Split", "Gather",
                                  "Abs",      "Sign", "Relu", "TopK",    "Pad"};
  return !form_operands(node).empty() || has(node, Trait::kKeepsAll) || has(node, Trait::kElementwise) || node.is("Conv") ||
         std::ranges::any_of(kOthers, [&](const char* name) { return node.is(name); });
}

bool may_be_scores(Value& value, Facts& facts) {
  return may_be_scores(value, [](const Node&) { return true; }, facts);
}

bool is_on_query(const Shape& shape) { return shape.empty() || shape.back().is(1); }
bool is_on_key(const Shape& shape) { return shape.size() == 1 || (shape.size() >= 2 && shape[shape.size() - 2].is(1)); }

/// Factors of scores, and how their axes lie where those of the scores lie as LAYOUT says.
struct PlacedFactors {
  std::vector<TensorScale> factors;
  ScoreLayout layout;
};

/// What WALK, of scores of RANK axes, says of how a factor's axes lie, of what Transposes made it of.
std::optional<ScoreLayout> layout_above(const Untransposed& factor, const ScoreWalk& walk, size_t rank) {
  if (std::ranges::is_sorted(factor.at)) return walk.layout;
  if (!walk.layout.order.empty() && factor.at.size() != rank) return std::nullopt;
  return walk.layout.before_transpose(factor.at);
}

/// The two that FACTOR is the outer product of, for each score one of queries and one of keys; none if it is no such product.
///
///   a b, a of (..., L, 1) and b of (..., 1, S)      a * b      a / b      Transpose(a b)
std::optional<PlacedFactors> outer_product(Value& factor, bool divides, const ScoreWalk& walk, size_t rank,
                                           MatchContext& context) {
  const Untransposed source = untransposed(factor, context.facts);
  Node* node = source.value->producer;
  const auto layout = layout_above(source, walk, rank);
  if (node && node->is("Einsum"))
    if (const Value* made = elementwise_product(*node, context)) node = made->producer;
  if (!layout || !node || !(node->is("MatMul") || node->is("Mul") || node->is("Div"))) return std::nullopt;
  const MaybeShape one = context.facts.shape(*node->inputs[0]), other = context.facts.shape(*node->inputs[1]);
  const bool is_of_vectors = one && other && one->size() >= 2 && other->size() >= 2 &&
                             is_on_query(*one) != is_on_query(*other) && is_on_key(*one) != is_on_key(*other);
  if (!is_of_vectors || (node->is("MatMul") && !is_on_query(*one))) return std::nullopt;
  const bool divides_second = divides != node->is("Div");
  return PlacedFactors{{{node->inputs[0], divides, false, {}}, {node->inputs[1], divides_second, false, {}}}, *layout};
}

/// The factors that FACTOR, or what it is the inverse of, has for each score; FACTOR if it is made of no such two.
PlacedFactors outer_factors(Value& factor, bool divides, const ScoreWalk& walk, size_t rank, MatchContext& context) {
  auto found = outer_product(factor, divides, walk, rank, context);
  const Node* inverse = found ? nullptr : canonical(factor, context.facts).producer;
  if (inverse && inverse->is("Reciprocal")) found = outer_product(*inverse->inputs[0], !divides, walk, rank, context);
  return found ? *std::move(found) : PlacedFactors{{{&factor, divides, false, {}}}, walk.layout};
}

/// Scores times a tensor: (..., L or 1, 1) scales queries, (..., 1, S) keys.
Matched<ScoreWalk> scaled_by_tensor(Node& node, int scores, const ScoreWalk& walk, MatchContext& context) {
  Value& operand = before_expands(*node.inputs[1 - scores], context.facts);
  const auto shape_of = [&](const Value& value) { return context.facts.shape(value); };
  if (!shape_of(operand) || !keeps_shape(*node.outputs[0], *node.inputs[scores], context.facts))
    return missed("scores.scale-shape", &node, shape_text(operand, context.facts), walk.peeled);
  if (walk.split) return missed("scores.reshape", &node, "a factor of scores whose queries and keys are split", walk.peeled);
  ScoreWalk next = step(walk, *node.inputs[scores], node.op()), at_factors = walk;
  auto [factors, layout] = outer_factors(operand, node.is("Div"), walk, shape_of(*node.outputs[0]).known().size(), context);
  at_factors.layout = std::move(layout);
  for (TensorScale factor : factors) {
    ATTN_OPT_MATCH(factor.value, placed_term(*factor.value, node, at_factors, context));
    const Shape& shape = shape_of(*factor.value).known();
    if (!is_on_query(shape) && !is_on_key(shape)) return missed("scores.scale-per-score", &node, to_string(shape), walk.peeled);
    factor.on_key = !is_on_query(shape);
    factor.frame = frame_at(node, walk, context);
    next.peeled.back() += factor.on_key ? "(key scale)" : "(query scale)";
    next.tensor_scales.push_back(std::move(factor));
  }
  return next;
}

std::string word(const Node& node, const ScoreForm& form) {
  if (is_scale(form)) return node.op() + (form[0].scale == 1 ? "(0)" : "(scale)");
  if (form.size() == 1) return node.op() + "(bias)";
  const bool keeps = form.front().scale == 0 && form.front().guard.size() == 1 && !form.front().guard[0].holds;
  return node.op() + (form.front().scale != 0 ? "(cases)" : keeps ? "(keep)" : "(drop)");
}

/// True if ONE puts a number in the place of scores.
bool is_fill(const ScoreCase& one) { return one.scale == 0 && one.number != 0; }

class Peel {
 public:
  Peel(Node& node, const ScoreWalk& walk, MatchContext& context)
      : node_(node), walk_(walk), context_(context), facts_(context.facts), reader_(*walk.reader, context) {
    if (node.is("Min") && walk.softcap == 0 && walk.tensor_scales.empty()) reader_.take_bounds(clamp_);
  }

  Ways run() {
    const SummedSides sides{walk_.layout.swaps_last_two() ? size_t{0} : 1, walk_.softcap != 0 || !walk_.tensor_scales.empty()};
    if (const auto joined = joined_product(node_, sides, context_))
      if (auto form = product(number_form(joined->scale), core_form())) {
        ATTN_OPT_MATCH(ScoreWalk way, way_through(*std::move(form), *joined->value));
        way.peeled.back() = node_.op() + "(products)";
        way.sums_operands |= joined->sums_operands;
        return std::vector{std::move(way)};
      }
    if (Value* sum = products_first(node_, sides, context_)) {
      ScoreWalk way = step(walk_, *sum, node_.op() + "(order)");
      way.sums_otherwise = true;
      return std::vector{std::move(way)};
    }
    const std::vector<size_t> operands = scores_among_operands();
    const bool has_scores =
        std::ranges::any_of(operands, [&](size_t number) { return may_be_scores(*node_.inputs[number], facts_); });
    if (!has_scores)
      if (Value* larger = with_larger_scores()) return std::vector{step(walk_, *larger, node_.op() + "(leading sizes)")};
    if (operands.empty()) return enlarged();
    if (operands.size() > 1) try_common(*node_.inputs[operands[0]], *node_.inputs[operands[1]]);
    if (ways_.empty())
      for (const size_t operand : operands) try_operand(operand);
    if (ways_.empty()) return tl::unexpected<Miss>(miss_);
    return std::move(ways_);
  }

 private:
  /// Operands that may be the scores: all that keep the shape, or those that a product leads to if there are any.
  std::vector<size_t> scores_among_operands() {
    std::vector<size_t> all, led_to;
    for (const size_t number : form_operands(node_)) {
      Value* operand = node_.input(static_cast<int>(number));
      const bool divides = node_.is("Div") && number == 1;
      if (!operand || divides || facts_.uniform(*operand) || !keeps_shape(*node_.outputs[0], *operand, facts_)) continue;
      if (is_nothing(*operand, facts_)) continue;
      all.push_back(number);
    }
    if (all.size() < 2) return all;
    std::ranges::copy_if(all, std::back_inserter(led_to),
                         [&](size_t number) { return may_be_scores(*node_.inputs[number], facts_); });
    return led_to.empty() ? all : led_to;
  }

  /// The result once more, of scores with the leading axes that they lack, or the leading sizes that another operand gives
  /// them; null if there are none that can have them.
  Value* with_larger_scores() {
    const MaybeShape after = facts_.shape(*node_.outputs[0]);
    for (const size_t number : form_operands(node_)) {
      Value* operand = node_.input(static_cast<int>(number));
      const MaybeShape before = operand ? facts_.shape(*operand) : nullptr;
      if (!after || !before || before->size() < 2 || before->size() > after->size() || !may_be_scores(*operand, facts_))
        continue;
      Value* larger = InnerValues(node_, context_).raised(operand, after->size());
      if (!keeps_shape(*node_.outputs[0], *larger, facts_)) {
        Value* sizes = leading_sizes(*after, facts_.shape(*larger).known());
        larger = sizes ? expanded(*operand, sizes, after->size(), kMaxExpanded) : nullptr;
      }
      if (larger && larger != operand) return InnerValues(node_, context_).again(node_, number, larger);
    }
    return nullptr;
  }

  /// What an Expand of BEFORE takes to have the leading sizes of AFTER; null if other sizes differ, or one is not known.
  Value* leading_sizes(const Shape& after, const Shape& before) {
    InnerValues inner(node_, context_);
    std::vector<Value*> sizes;
    for (size_t axis = 0; axis < after.size(); ++axis) {
      const bool may_grow = before[axis].is(1) && axis + 2 < after.size();
      Value* size = before[axis] == after[axis] ? inner.build().ints({1}) : may_grow ? size_of(after, axis, inner) : nullptr;
      if (!size) return nullptr;
      sizes.push_back(size);
    }
    return inner.concat(sizes, 0);
  }

  /// The size of AXIS of AFTER, of an operand that has it; null if none does.
  Value* size_of(const Shape& after, size_t axis, InnerValues& inner) {
    if (after[axis].is_constant()) return inner.build().ints({after[axis].value()});
    for (Value* operand : node_.inputs) {
      const MaybeShape shape = operand ? facts_.shape(*operand) : nullptr;
      if (shape && shape->size() == after.size() && (*shape)[axis] == after[axis])
        return inner.size(*operand, static_cast<int64_t>(axis));
    }
    return nullptr;
  }

  /// SCORES, expanded to RANK axes of at least SIZES:
  ///
  ///   Expand(Q K^T)  =>  Expand(Q) K^T      Expand(a x)  =>  a Expand(x)      Expand(f(x, number))  =>  f(Expand(x), number)
  ///   Expand(x^T)  =>  Expand(x)^T
  Value* expanded(Value& scores, Value* sizes, size_t rank, int depth) {
    Node* node = canonical(scores, facts_).producer;
    if (!node || depth == 0) return nullptr;
    if (node->is("MatMul")) {
      if (!has_equal_ranks(*node, facts_)) return nullptr;
      InnerValues inner(node_, context_);
      return inner.build().node("MatMul",
                                {inner.build().node("Expand", {node->inputs[0], sizes}), inner.raised(node->inputs[1], rank)});
    }
    if (Value* turned = node->is("Transpose") ? swapped_from(*node, facts_) : nullptr) {
      Value* larger = expanded(*turned, sizes, rank, depth - 1);
      return larger ? InnerValues(node_, context_).swapped(larger, rank) : nullptr;
    }
    if (const auto [core, factor] = scaled_by(*node, context_); core) {
      Value* larger = expanded(*core, sizes, rank, depth - 1);
      return larger ? InnerValues(node_, context_).scaled(larger, factor) : nullptr;
    }
    for (const size_t number : form_operands(*node)) {
      Value* operand = node->input(static_cast<int>(number));
      const bool is_scores = operand && !facts_.uniform(*operand) && keeps_shape(*node->outputs[0], *operand, facts_);
      Value* larger = is_scores ? expanded(*operand, sizes, rank, depth - 1) : nullptr;
      if (larger) return InnerValues(node_, context_).again(*node, number, larger);
    }
    return nullptr;
  }

  Ways enlarged() const {
    const std::string made = shape_text(*node_.outputs[0], facts_);
    if (node_.is("Where"))
      return missed("scores.where", &node_, "no branch is a number, or the Where enlarges the scores to " + made, walk_.peeled);
    if (has(node_, Trait::kMultiplies)) return missed("scores.scale-shape", &node_, made, walk_.peeled);
    return missed("scores.enlarged", &node_, "no operand that may be scores has the result's shape " + made, walk_.peeled);
  }

  void try_common(Value& one, Value& other) {
    const auto is_score = [this](Value& value) { return !facts_.uniform(value) && may_be_scores(value, facts_); };
    Value* core = common_source(one, other, is_score, facts_);
    if (!core || !keeps_shape(*node_.outputs[0], *core, facts_)) return;
    auto form = reader_.in_terms_of(*core, *node_.outputs[0]);
    if (!form) return;
    const bool loses_nan = cancels(node_, *core, *form, reader_, facts_);
    auto way = way_through(*std::move(form), *core);
    if (way) way->makes_nan_of_infinity |= loses_nan;
    enter(std::move(way));
  }

  void try_operand(size_t operand) {
    if (auto form = reader_.one_step(node_, operand)) return enter(way_through(*std::move(form), *node_.inputs[operand]));
    if (has(node_, Trait::kMultiplies)) return enter(scaled_by_tensor(node_, static_cast<int>(operand), walk_, context_));
    enter(missed("scores.operator", &node_, node_.op(), walk_.peeled));
  }

  void enter(Matched<ScoreWalk> way) {
    if (way)
      ways_.push_back(*std::move(way));
    else if (miss_.id != "scores.scale-per-score")
      miss_ = std::move(way.error());
  }

  Matched<ScoreWalk> way_through(ScoreForm form, Value& core) {
    const std::string what = word(node_, form);
    if (!is_scale(form)) ATTN_OPT_DONE(check_place(form));
    for (ScoreCase& one : form)
      if (is_fill(one)) one.number = scaled_fill(one.number);
    ATTN_OPT_DONE(place(form, node_, walk_, context_));
    ScoreWalk next = step(walk_, core, what);
    next.add_below_scales(form);
    auto made = substituted(walk_.form, form);
    if (!made) return missed("scores.too-many-ways", &node_, "scores in more cases than are followed", walk_.peeled);
    next.form = *std::move(made);
    next.changes += is_scale(form) ? 0 : 1;
    next.lies_above_fill |= node_.is("Min");
    if (clamp_) next.clamp_at(*clamp_ * std::abs(walk_.scale));
    return next;
  }

  /// FILL, multiplied with what is the nearest to 0 of the tensors below: a fill of masks hides as much as what the model makes
  /// of it. NaN if one of them may be other than positive.
  ///
  ///   t (m ? f : s)  =>  m ? t f : t s
  double scaled_fill(double fill) const {
    for (const TensorScale& factor : walk_.tensor_scales) {
      const MaskContents held = mask_contents(*factor.value, facts_);
      if (!(held.least > 0) || held.may_hold_lowest || held.may_hold_minus_inf || held.may_hold_nan) return NAN;
      fill = factor.divides ? fill / held.greatest : fill * held.least;
    }
    return fill;
  }

  Matched<void> check_place(const ScoreForm& form) const {
    if (walk_.softcap != 0)
      return missed(form.size() > 1 ? "scores.mask-below-softcap" : "scores.bias-below-softcap", &node_, node_.op(),
                    walk_.peeled);
    const auto is_lost = [this](const ScoreCase& one) {
      return is_fill(one) && !(scaled_fill(one.number) <= kHighestMaskFill);
    };
    if (!walk_.tensor_scales.empty() && std::ranges::any_of(form, is_lost))
      return missed("scores.mask-below-tensor-scale", &node_, node_.op(), walk_.peeled);
    return {};
  }

  Node& node_;
  const ScoreWalk& walk_;
  MatchContext& context_;
  Facts& facts_;
  FormReader reader_;
  std::optional<double> clamp_;  ///< what scores are held below where a mask does not lower them
  std::vector<ScoreWalk> ways_;
  Miss miss_;
};

}  // namespace

bool may_be_scores(Value& value, const std::function<bool(const Node&)>& fits, Facts& facts) {
  std::vector<Value*> values{&value};
  for (size_t i = 0; i < values.size() && values.size() < kMaxSearched; ++i) {
    Node* node = canonical(*values[i], facts).producer;
    if (!node) continue;
    if ((makes_product(*node, facts) && fits(*node)) || makes_distances(*node, facts)) return true;
    const auto look_at = [&](Value* made_of) {
      if (made_of && std::ranges::find(values, made_of) == values.end()) values.push_back(made_of);
    };
    for (const Graph* body : node->bodies) std::ranges::for_each(body->outputs(), look_at);
    if (may_carry_scores(*node)) std::ranges::for_each(node->inputs, look_at);
  }
  return false;
}

Ways peel_form(Node& node, const ScoreWalk& walk, MatchContext& context) { return Peel(node, walk, context).run(); }

}  // namespace attn_opt
