#include "patterns/scores/joined_keys.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "patterns/inner_values.h"
#include "patterns/layout_checks.h"
#include "patterns/products/joined_product.h"
#include "patterns/products/products.h"
#include "patterns/softmax/row_sum.h"

namespace attn_opt {
namespace {

/// An operand of a product before Transposes, and where its axes lie: the batch, heads, rows and features.
struct PlacedOperand {
  Value* source = nullptr;
  ScoreLayout layout;
};

/// The scores of some of the keys: SCALE times QUERIES KEYS^T, and TERMS.
struct KeySegment {
  PlacedOperand queries, keys;
  double scale = 1;
  std::vector<ScoreTerm> terms = {};  ///< outermost first
};

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

/// True if SEGMENT is a number times a product, with biases and masks.
bool is_scaled_product(const ScoreWalk& segment) {
  return segment.softcap == 0 && segment.scale != 0 && segment.tensor_scales.empty() && !segment.clamp && !segment.lowered &&
         !segment.leaves_exp_range;
}

/// What masked keys have, of a mask.
double fill_of(const ScoreTerm& term) { return term.kind == ScoreTerm::Kind::kBias ? 0 : term.coefficient * term.fill; }

class KeyJoiner {
 public:
  KeyJoiner(Node& node, const ScoreWalk& walk, MatchContext& context)
      : node_(node), walk_(walk), context_(context), facts_(context.facts), inner_(node, context) {}

  Matched<ScoreWalk> run() {
    const MaybeShape after = facts_.shape(*node_.outputs[0]);
    if (walk_.split || !after || !joins_keys(node_, walk_, after->size())) return miss("not along the keys of scores");
    std::vector<KeySegment> segments;
    for (Value* input : node_.inputs) {
      ATTN_OPT_MATCH(KeySegment segment, segment_in(*input));
      segments.push_back(std::move(segment));
    }
    const KeySegment& first = segments.front();
    rank_ = first.keys.layout.order.size();
    std::vector<Value*> keys;
    for (const KeySegment& segment : segments) {
      if (!has_queries_of(segment, first)) return miss("of other queries");
      Value* own = placed(segment.keys);
      if (!own) return miss("of keys of unknown rank");
      keys.push_back(inner_.scaled(own, segment.scale / first.scale));
    }
    Value *joined = all(keys, rank_ - 2), *queries = placed(first.queries);
    if (!joined || !queries) return miss("of keys that do not fit beside each other");
    Value* turned = inner_.transposed(joined, ScoreLayout::keys_by_queries(rank_).order);
    Value* scores = inner_.scaled(inner_.build().node("MatMul", {queries, turned}), first.scale);
    ATTN_OPT_MATCH(scores, with_terms(scores, segments, keys));
    if (are_regrouped_) scores = regrouped(*scores);
    ScoreWalk next = step(walk_, *scores, node_.op() + "(products)");
    next.layout.order.clear();
    return next;
  }

 private:
  tl::unexpected<Miss> miss(const std::string& why) const {
    return missed("scores.operator", &node_, node_.op() + " " + why, walk_.peeled);
  }

  /// SCORES with the leading axes of those that are joined, behind which they are regrouped.
  Value* regrouped(Value& scores) {
    const auto keys = std::ssize(facts_.shape(*node_.outputs[0]).known()) - 1;
    std::vector<Value*> sizes;
    for (int64_t axis = 0; axis < keys; ++axis) sizes.push_back(inner_.size(*node_.inputs[0], axis));
    sizes.push_back(inner_.build().ints({-1}));
    return inner_.build().node("Reshape", {&scores, inner_.concat(sizes, 0)});
  }

  Matched<KeySegment> segment_in(Value& scores) {
    auto segment = walk_scores(scores, core_form(), walk_.layout, {}, context_);
    if (!segment) return miss("of what is no scores: " + segment.error().id);
    const auto is_floor = [](const ScoreTerm& term) { return term.kind == ScoreTerm::Kind::kFloor; };
    if (!is_scaled_product(*segment) || std::ranges::any_of(segment->terms, is_floor))
      return miss("of scores that are changed each");
    are_regrouped_ |= !segment->frames.empty();
    if (are_regrouped_ && (!segment->terms.empty() || !walk_.layout.order.empty()))
      return miss("of scores that are regrouped and changed each");
    Node& product = *segment->value->producer;
    ATTN_OPT_MATCH(const ScoreProduct read, score_product(product, segment->layout, context_));
    const size_t leading = read.scores.size() - 2, heads = std::min(segment->layout.head_axes, leading);
    const auto queries = placed_operand(read.query, leading, heads, facts_);
    const auto keys = placed_operand(read.key, leading, heads, facts_);
    if (!queries || !keys || read.addend) return miss("of products that are read otherwise");
    return KeySegment{*queries, *keys, segment->scale * read.scale, segment->terms};
  }

  bool has_queries_of(const KeySegment& segment, const KeySegment& first) {
    return segment.queries.layout.order == first.queries.layout.order &&
           facts_.type(*segment.keys.source) == facts_.type(*first.keys.source) &&
           computes_same(*segment.queries.source, *first.queries.source, facts_);
  }

  /// VALUES side by side along AXIS; null if one is null or they do not fit.
  Value* all(const std::vector<Value*>& values, size_t axis) {
    Value* joined = values.front();
    for (size_t i = 1; i < values.size() && joined; ++i)
      joined = values[i] ? side_by_side(*joined, *values[i], static_cast<int64_t>(axis), inner_, facts_) : nullptr;
    return joined;
  }

  /// SCORES with the terms of SEGMENTS, which have KEYS, side by side. Segments have one each of the same kinds, or none.
  ///
  ///   Concat(s + b, t)  =>  Concat(s, t) + Concat(b, 0)
  ///   Concat(Where(m, s, f), t)  =>  Where(Concat(m, true), Concat(s, t), f)
  Matched<Value*> with_terms(Value* scores, const std::vector<KeySegment>& segments, const std::vector<Value*>& keys) {
    const auto& most = std::ranges::max_element(segments, {}, [](const KeySegment& one) { return one.terms.size(); })->terms;
    for (size_t layer = most.size(); layer-- > 0;) {
      std::vector<Value*> values;
      for (size_t i = 0; i < segments.size(); ++i) {
        const auto& own = segments[i].terms;
        const bool is_alike = own.empty() || (own.size() == most.size() && own[layer].kind == most[layer].kind &&
                                              fill_of(own[layer]) == fill_of(most[layer]));
        values.push_back(is_alike ? term_over(own.empty() ? nullptr : &own[layer], most[layer], *keys[i], *scores) : nullptr);
      }
      Value* joined = values.front() ? all(values, rank_ - 1) : nullptr;
      if (!joined) return miss("of scores that are changed each");
      scores = with_term(*scores, most[layer], joined);
    }
    return scores;
  }

  /// TERM, or what changes nothing if that is null, of the KIND of others, for each of KEYS of SCORES; null if it has another
  /// type.
  Value* term_over(const ScoreTerm* term, const ScoreTerm& kind, Value& keys, Value& scores) {
    const bool adds = kind.kind == ScoreTerm::Kind::kBias;
    const DataType type = adds ? facts_.type(scores) : onnx::TensorProto::BOOL;
    const double neutral = kind.kind == ScoreTerm::Kind::kKeep ? 1 : 0;
    Value* value = term ? term->value : inner_.build().scalar(neutral, type);
    const MaybeShape shape = facts_.shape(*value);
    if (!shape || shape->size() > rank_ || facts_.type(*value) != type) return nullptr;
    if (term && adds) value = inner_.scaled(value, term->coefficient);
    if (!shape->empty() && shape->back() == from_last(facts_.shape(keys).known(), 1)) return inner_.raised(value, rank_);
    std::vector<Value*> sizes(rank_ - 1, inner_.build().ints({1}));
    sizes.push_back(inner_.size(keys, static_cast<int64_t>(rank_) - 2));
    return inner_.build().node("Expand", {value, inner_.concat(sizes, 0)});
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
  size_t rank_ = 0;             ///< of the products' scores
  bool are_regrouped_ = false;  ///< from the products' leading axes to those of the scores that are joined
};

}  // namespace

Matched<ScoreWalk> peel_joined_keys(Node& node, const ScoreWalk& walk, MatchContext& context) {
  return KeyJoiner(node, walk, context).run();
}

}  // namespace attn_opt
