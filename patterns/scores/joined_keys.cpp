#include "patterns/scores/joined_keys.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/alike.h"
#include "patterns/inner_values.h"
#include "patterns/layout_checks.h"
#include "patterns/products/joined_product.h"
#include "patterns/products/products.h"
#include "patterns/same_number.h"
#include "patterns/softmax/row_sum.h"

namespace attn_opt {
namespace {

/// An operand of a product before Transposes, and where its axes lie: the batch, heads, rows and features.
struct PlacedOperand {
  Value* source = nullptr;
  ScoreLayout layout;
};

/// Some of the scores: SCALE and FACTORS times QUERIES KEYS^T, capped, and TERMS.
struct ScoreSegment {
  PlacedOperand queries, keys;
  Dim outermost = 1;  ///< size of the first axis
  double scale = 1;
  double softcap = 0;
  std::vector<ScoreTerm> terms = {};  ///< outermost first
  std::vector<TensorScale> factors = {};
};

/// What lies over the scores, of T: that of each segment, null where it has none.
template <class T>
using Layer = std::vector<const T*>;

/// What the first segment has that has any.
template <class T>
const T& first_of(const Layer<T>& layer) {
  return **std::ranges::find_if(layer, [](const T* own) { return own != nullptr; });
}

/// The axes of SIDE of ROLE in the order of their factors; COUNT times kNoAxis where it has none. Nullopt if it has another
/// number of them.
std::optional<std::vector<int64_t>> axes_of_role(const ProductSide& side, Role role, size_t count) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < side.roles.size(); ++i) {
    const int64_t axis = side.order.empty() ? static_cast<int64_t>(i) : side.order[i];
    if (side.roles[static_cast<size_t>(axis)] == role) axes.push_back(axis);
  }
  if (axes.empty()) axes.resize(count, kNoAxis);
  return axes.size() == count ? std::optional(axes) : std::nullopt;
}

/// SIDE of a product whose scores have LEADING axes, of which the last HEADS are those of heads.
std::optional<PlacedOperand> placed_operand(const ProductSide& side, size_t leading, size_t heads, Facts& facts) {
  const Untransposed before = untransposed(*side.value, facts);
  PlacedOperand operand{before.value, {}};
  const std::pair<Role, size_t> parts[] = {
      {Role::kBatch, leading - heads}, {Role::kHead, heads}, {Role::kRow, 1}, {Role::kFeature, 1}};
  for (const auto& [role, count] : parts) {
    const auto axes = axes_of_role(side, role, count);
    if (!axes || before.at.size() != side.roles.size()) return std::nullopt;
    for (const int64_t axis : *axes)
      operand.layout.order.push_back(axis == kNoAxis ? kNoAxis : before.at[static_cast<size_t>(axis)]);
  }
  return operand;
}

/// True if SEGMENT is a number and tensors times a product, or a number times one that is capped, with biases and masks.
bool is_scaled_product(const ScoreWalk& segment) {
  const bool is_capped_alone = segment.softcap == 0 || segment.tensor_scales.empty();
  return segment.scale != 0 && is_capped_alone && !segment.clamp && !segment.lowered && !segment.leaves_exp_range;
}

/// What masked keys have, of a mask.
double fill_of(const ScoreTerm& term) { return term.kind == ScoreTerm::Kind::kBias ? 0 : term.coefficient * term.fill; }

/// True if ONE and OTHER change scores in the same way, up to what they change them by.
bool are_of_a_kind(const ScoreTerm& one, const ScoreTerm& other) {
  return one.kind == other.kind && fill_of(one) == fill_of(other);
}
bool are_of_a_kind(const TensorScale& one, const TensorScale& other) { return one.divides == other.divides; }

/// The layers that PART of SEGMENTS come to, in the order of each: those of a kind are one where the order allows it.
template <class T>
std::vector<Layer<T>> layers_of(std::vector<T> ScoreSegment::* part, const std::vector<ScoreSegment>& segments) {
  std::vector<Layer<T>> layers;
  for (size_t i = 0; i < segments.size(); ++i) {
    size_t at = 0;
    for (const T& own : segments[i].*part) {
      const auto is_alike = [&own](const Layer<T>& layer) { return are_of_a_kind(own, first_of(layer)); };
      const auto found = std::find_if(layers.begin() + static_cast<std::ptrdiff_t>(at), layers.end(), is_alike);
      if (found != layers.end())
        at = static_cast<size_t>(found - layers.begin());
      else
        layers.emplace(layers.begin() + static_cast<std::ptrdiff_t>(at), segments.size(), nullptr);
      layers[at++][i] = &own;
    }
  }
  return layers;
}

class ScoreJoiner {
 public:
  ScoreJoiner(Node& node, const ScoreWalk& walk, MatchContext& context)
      : node_(node), walk_(walk), context_(context), facts_(context.facts), inner_(node, context) {}

  Matched<ScoreWalk> run() {
    const MaybeShape after = facts_.shape(*node_.outputs[0]);
    if (walk_.split || !after || after->size() < 2) return miss("of scores whose axes are split or not known");
    place_ = place_joined(after->size());
    const std::vector<Value*> flat = without_joined_axis(after->size());
    adds_axis_ = !flat.empty();
    std::vector<ScoreSegment> segments;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      ATTN_OPT_MATCH(ScoreSegment segment, segment_in(adds_axis_ ? *flat[i] : *node_.inputs[i]));
      segments.push_back(std::move(segment));
    }
    const ScoreSegment& first = segments.front();
    rank_ = first.keys.layout.order.size() + (adds_axis_ ? 1 : 0);
    joins_queries_ = place_ + 1 != after->size();
    joins_keys_ = place_ + 2 != after->size();
    if (joins_queries_ && (rank_ != after->size() || are_regrouped_) && !regroups_behind_joined(segments))
      return miss("of scores that are regrouped, not along the keys");
    std::vector<Value*> queries, keys;
    for (const ScoreSegment& segment : segments) {
      if (!fits(segment, first)) return miss(joins_queries_ ? "of other keys" : "of other queries");
      queries.push_back(placed(segment.queries));
      keys.push_back(placed(segment.keys));
      if (!queries.back() || !keys.back()) return miss("of keys of unknown rank");
      queries.back() = with_joined_axis(*queries.back(), rank_ - 1);
      keys.back() = with_joined_axis(*keys.back(), rank_ - 1);
      Value*& scaled = joins_keys_ ? keys.back() : queries.back();
      scaled = inner_.scaled(scaled, segment.scale / first.scale);
    }
    Value* all_keys = joins_keys_ ? all(keys, joins_queries_ ? place_ : rank_ - 2) : keys.front();
    Value* all_queries = joins_queries_ ? all(queries, place_) : queries.front();
    if (!all_keys || !all_queries) return miss("of keys that do not fit beside each other");
    Value* turned = inner_.transposed(all_keys, ScoreLayout::keys_by_queries(rank_).order);
    Value* scores = inner_.scaled(inner_.build().node("MatMul", {all_queries, turned}), first.scale);
    ATTN_OPT_MATCH(scores, with_factors(scores, segments, joins_queries_ ? queries : keys));
    if (first.softcap != 0) scores = capped(scores, first.softcap);
    // Terms are of the type that the scores are cast to: a half may not hold a fill.
    const DataType type = facts_.type(*node_.outputs[0]);
    if (facts_.type(*scores) != type)
      scores = inner_.build().node("Cast", {scores}, {GraphBuilder::attribute("to", int64_t{type})});
    ATTN_OPT_MATCH(scores, with_terms(scores, segments, joins_queries_ ? queries : keys));
    if (are_regrouped_) scores = regrouped(*scores);
    ScoreWalk next = step(walk_, *scores, node_.op() + "(products)");
    next.take_changes_of(changes_);
    next.layout.order.clear();
    return next;
  }

 private:
  tl::unexpected<Miss> miss(const std::string& why) const {
    return missed("scores.operator", &node_, node_.op() + " " + why, walk_.peeled);
  }

  /// The place of the axis that NODE_ joins along, of scores of RANK axes: the last but one for queries, the last for keys.
  size_t place_joined(size_t rank) const {
    const int64_t attribute = node_.int_attribute("axis", 0);
    const int64_t axis = attribute < 0 ? attribute + static_cast<int64_t>(rank) : attribute;
    const std::vector<int64_t>& order = walk_.layout.order;
    return static_cast<size_t>(order.empty() ? axis : std::ranges::find(order, axis) - order.begin());
  }

  /// What the inputs are before each was given the leading axis that they are joined along; empty if they are anything else.
  ///
  ///   Concat(Unsqueeze(a b^T), Unsqueeze(c d^T))  =>  Concat(Unsqueeze(a), Unsqueeze(c)) Concat(Unsqueeze(b), Unsqueeze(d))^T
  std::vector<Value*> without_joined_axis(size_t rank) {
    std::vector<Value*> found;
    for (Value* input : node_.inputs) {
      const Node* node = canonical(*input, facts_).producer;
      const bool may_add = node && has(*node, Trait::kRegroups) && node->input(0) && place_ + 2 < rank &&
                           walk_.layout.rank() == walk_.layout.order.size();
      const MaybeShape after = facts_.shape(*input), before = may_add ? facts_.shape(*node->inputs[0]) : nullptr;
      if (!before || !after || after->size() != rank || !(*after)[axis_joined()].is(1)) return {};
      Shape flat = *after;
      flat.erase(flat.begin() + static_cast<std::ptrdiff_t>(axis_joined()));
      if (flat != *before) return {};
      found.push_back(node->inputs[0]);
    }
    return found;
  }

  /// The axis that is joined along, of the scores as they lie.
  size_t axis_joined() const { return walk_.layout.order.empty() ? place_ : static_cast<size_t>(walk_.layout.order[place_]); }

  /// How what is joined lies: as the scores do, without the axis that they get when they are joined.
  ScoreLayout layout_of_inputs() const {
    ScoreLayout layout = walk_.layout;
    if (!adds_axis_ || layout.order.empty()) return layout;
    const auto gone = static_cast<int64_t>(axis_joined());
    std::erase(layout.order, gone);
    for (int64_t& axis : layout.order) axis -= axis > gone ? 1 : 0;
    if (std::ranges::is_sorted(layout.order)) layout.order.clear();
    return layout;
  }

  /// VALUE, whose axes are the last of RANK, with the axis that is joined along if it reaches so far.
  Value* with_joined_axis(Value& value, size_t rank) {
    const size_t behind = rank - place_, own = facts_.shape(value).known().size();
    return adds_axis_ && own >= behind ? inner_.unsqueezed(&value, {static_cast<int64_t>(own - behind)}) : &value;
  }

  /// True if SEGMENTS are joined along their outermost axis, and regrouped behind it:
  ///
  ///   Concat(Reshape(a), Reshape(b))  =>  Reshape(Concat(a, b)), the size of the axis being kept
  bool regroups_behind_joined(const std::vector<ScoreSegment>& segments) const {
    if (place_ != 0 || !are_regrouped_ || !walk_.layout.order.empty()) return false;
    for (size_t i = 0; i < segments.size(); ++i) {
      const MaybeShape shape = facts_.shape(*node_.inputs[i]);
      if (!shape || shape->empty() || !shape->front().is_constant()) return false;
      if (!adds_axis_ && shape->front() != segments[i].outermost) return false;
    }
    return true;
  }

  /// CAP tanh(SCORES / CAP)
  Value* capped(Value* scores, double cap) {
    return inner_.scaled(inner_.build().node("Tanh", {inner_.scaled(scores, 1 / cap)}), cap);
  }

  /// SCORES with the leading axes of those that are joined, behind which they are regrouped.
  Value* regrouped(Value& scores) {
    const Shape whole = facts_.shape(*node_.outputs[0]).known();
    std::vector<Value*> sizes;
    for (int64_t axis = 0; axis + 1 < std::ssize(whole); ++axis) {
      const bool is_joined = joins_queries_ && axis == 0;
      sizes.push_back(is_joined ? inner_.build().ints({whole.front().value()}) : inner_.size(*node_.inputs[0], axis));
    }
    sizes.push_back(inner_.build().ints({-1}));
    return inner_.build().node("Reshape", {&scores, inner_.concat(sizes, 0)});
  }

  Matched<ScoreSegment> segment_in(Value& scores) {
    auto segment = walk_scores(scores, core_form(), layout_of_inputs(), {}, context_);
    if (!segment) return miss("of what is no scores: " + segment.error().id);
    const auto is_floor = [](const ScoreTerm& term) { return term.kind == ScoreTerm::Kind::kFloor; };
    if (!is_scaled_product(*segment) || std::ranges::any_of(segment->terms, is_floor))
      return miss("of scores that are changed each");
    changes_.take_changes_of(*segment);
    are_regrouped_ |= !segment->frames.empty();
    const bool is_changed = !segment->terms.empty() || !segment->tensor_scales.empty();
    if (are_regrouped_ && (is_changed || !walk_.layout.order.empty()))
      return miss("of scores that are regrouped and changed each");
    Node& product = *segment->value->producer;
    ATTN_OPT_MATCH(const ScoreProduct read, score_product(product, segment->layout, context_));
    const size_t leading = read.scores.size() - 2, heads = std::min(segment->layout.head_axes, leading);
    const auto queries = placed_operand(read.query, leading, heads, facts_);
    const auto keys = placed_operand(read.key, leading, heads, facts_);
    if (!queries || !keys || read.addend) return miss("of products that are read otherwise");
    return ScoreSegment{*queries,         *keys,          read.scores.front(),   segment->scale * read.scale,
                        segment->softcap, segment->terms, segment->tensor_scales};
  }

  /// True if SEGMENT has what is not joined in common with FIRST.
  bool fits(const ScoreSegment& segment, const ScoreSegment& first) {
    return std::abs(segment.softcap - first.softcap) <= kSameNumber * first.softcap &&
           facts_.type(*segment.keys.source) == facts_.type(*first.keys.source) &&
           facts_.type(*segment.queries.source) == facts_.type(*first.queries.source) &&
           segment.keys.layout.order.size() == first.keys.layout.order.size() &&
           (joins_queries_ || is_same(segment.queries, first.queries)) && (joins_keys_ || is_same(segment.keys, first.keys));
  }

  bool is_same(const PlacedOperand& one, const PlacedOperand& other) {
    return one.layout.order == other.layout.order && computes_same(*one.source, *other.source, facts_);
  }

  /// VALUES side by side along AXIS; null if one is null or they do not fit.
  Value* all(const std::vector<Value*>& values, size_t axis) {
    Value* joined = values.front();
    for (size_t i = 1; i < values.size() && joined; ++i)
      joined = values[i] ? side_by_side(*joined, *values[i], static_cast<int64_t>(axis), inner_, facts_) : nullptr;
    return joined;
  }

  /// SCORES with the terms of SEGMENTS, which have OPERANDS that are joined, side by side.
  ///
  ///   Concat(s + b, t)  =>  Concat(s, t) + Concat(b, 0)
  ///   Concat(Where(m, s, f), t)  =>  Where(Concat(m, true), Concat(s, t), f)
  Matched<Value*> with_terms(Value* scores, const std::vector<ScoreSegment>& segments, const std::vector<Value*>& operands) {
    const auto layers = layers_of(&ScoreSegment::terms, segments);
    for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
      const ScoreTerm& kind = first_of(*layer);
      const bool adds = kind.kind == ScoreTerm::Kind::kBias;
      const DataType type = adds ? facts_.type(*scores) : DataType(onnx::TensorProto::BOOL);
      const double neutral = kind.kind == ScoreTerm::Kind::kKeep ? 1 : 0;
      std::vector<Value*> values;
      for (const ScoreTerm* term : *layer)
        values.push_back(!term ? nullptr : adds ? inner_.scaled(term->value, term->coefficient) : term->value);
      Value* joined = over_segments(values, inner_.build().scalar(neutral, type), operands);
      if (!joined) return miss("of scores that are changed each");
      scores = with_term(*scores, kind, joined);
    }
    return scores;
  }

  /// SCORES times the factors of SEGMENTS, which have OPERANDS that are joined: one that all have, or theirs side by side.
  ///
  ///   Concat(s * f, t * g)  =>  Concat(s, t) * Concat(f, g)
  Matched<Value*> with_factors(Value* scores, const std::vector<ScoreSegment>& segments, const std::vector<Value*>& operands) {
    for (const Layer<TensorScale>& layer : layers_of(&ScoreSegment::factors, segments)) {
      std::vector<Value*> values;
      for (const TensorScale* factor : layer) values.push_back(factor ? factor->value : nullptr);
      const auto is_first = [&](Value* value) { return value && computes_same(*value, *values.front(), facts_); };
      const bool is_common =
          values.front() && !layer.front()->on_key && !joins_queries_ && std::ranges::all_of(values, is_first);
      Value* one = inner_.build().scalar(1, facts_.type(*scores));
      Value* factor = is_common ? values.front() : over_segments(values, one, operands);
      if (!factor) return miss("of scores that are changed each");
      const bool divides = first_of(layer).divides;
      scores = inner_.build().node(divides ? "Div" : "Mul", {scores, factor});
    }
    return scores;
  }

  /// VALUES side by side, one for each of the segments of OPERANDS and NEUTRAL where that is null; null if they do not fit.
  Value* over_segments(std::vector<Value*> values, Value* neutral, const std::vector<Value*>& operands) {
    const DataType type = facts_.type(*neutral);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = over(values[i] ? *values[i] : *neutral, type, *operands[i]);
      if (!values[i]) return nullptr;
    }
    return all(values, place_);
  }

  /// VALUE for each of the rows of OPERAND that scores have; null if it is of another type than TYPE.
  Value* over(Value& value, DataType type, Value& operand) {
    MaybeShape shape = facts_.shape(value);
    if (!shape || shape->size() > rank_ - (adds_axis_ ? 1 : 0) || facts_.type(value) != type) return nullptr;
    Value* laid = adds_axis_ ? with_joined_axis(value, rank_ - 1) : &value;
    shape = facts_.shape(*laid);
    const size_t rows = joins_queries_ ? place_ : rank_ - 2, lacking = rank_ - shape->size();
    Value* raised = inner_.raised(laid, rank_);
    if (place_ >= lacking && (*shape)[place_ - lacking] == facts_.shape(operand).known()[rows]) return raised;
    std::vector<Value*> sizes(rank_, inner_.build().ints({1}));
    sizes[place_] = inner_.size(operand, static_cast<int64_t>(rows));
    return inner_.build().node("Expand", {raised, inner_.concat(sizes, 0)});
  }

  /// SCORES with VALUE, which says of each score what TERM does.
  Value* with_term(Value& scores, const ScoreTerm& term, Value* value) {
    if (term.kind == ScoreTerm::Kind::kBias) return inner_.sum(&scores, value);
    Value* fill = inner_.build().scalar(fill_of(term), facts_.type(scores));
    return inner_.build().node(
        "Where", term.kind == ScoreTerm::Kind::kKeep ? std::vector{value, &scores, fill} : std::vector{value, fill, &scores});
  }

  Value* placed(const PlacedOperand& operand) { return attn_opt::placed(*operand.source, operand.layout, node_, context_); }

  Node& node_;
  const ScoreWalk& walk_;
  MatchContext& context_;
  Facts& facts_;
  InnerValues inner_;
  ScoreWalk changes_;           ///< of all segments
  size_t place_ = 0;            ///< of the axis that is joined
  bool joins_queries_ = false;  ///< or heads, or batch elements
  bool joins_keys_ = true;      ///< or heads, or batch elements
  size_t rank_ = 0;             ///< of the products' scores
  bool adds_axis_ = false;      ///< these have the axis that is joined when they are joined alone
  bool are_regrouped_ = false;  ///< from the products' leading axes to those of the scores that are joined
};

}  // namespace

Matched<ScoreWalk> peel_joined_keys(Node& node, const ScoreWalk& walk, MatchContext& context) {
  return ScoreJoiner(node, walk, context).run();
}

}  // namespace attn_opt
