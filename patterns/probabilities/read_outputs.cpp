#include "patterns/probabilities/read_outputs.h"

#include <algorithm>
#include <utility>

#include "attn_opt/canonical.h"
#include "patterns/products/products.h"
#include "patterns/scores/score_walk.h"

namespace attn_opt {
namespace {

/// The value on the way that is what the softmax of the whole site gives, every guard and mask above it and no step, where
/// others read that alone. Else what the softmax makes, or the guard behind it of that, unless that is a step: the model's
/// steps, and casts of it, make of it what others read.
std::optional<EscapingValue> escaping_probabilities(const ProbabilityWalk& walk, Facts& facts) {
  if (walk.escaping.empty() || walk.is_multiple) return std::nullopt;
  const bool guard_is_step = walk.guard && !walk.steps.empty() && walk.steps[0].node == walk.guard->node;
  const EscapingValue& escaping = walk.escaping[0];
  const bool is_whole = escaping.guarded == walk.guard.has_value() && !guard_is_step && escaping.steps == 0;
  const bool is_cast = facts.type(*escaping.value) != facts.type(*walk.way[0]);
  if (is_whole && walk.escaping.size() == 1 && !walk.sinks && !(is_cast && !walk.guard)) return escaping;
  if (walk.sinks) return walk.guard ? std::nullopt : std::optional(EscapingValue{walk.way[0]});
  if (!walk.picked.empty() || walk.row_split) return std::nullopt;
  if (!walk.guard || guard_is_step) return EscapingValue{walk.way[0]};
  if (!std::ranges::all_of(walk.escaping, &EscapingValue::guarded)) return std::nullopt;
  return EscapingValue{walk.guard->node->outputs[0], walk.guard_transposed, 0, true, walk.guard_perm};
}

/// The last of the copies of VALUE that are made one of the other and read by nothing else: it stands furthest below.
Value& last_copy(Value& value, Facts& facts) {
  Value* last = &value;
  while (!last->is_output && last->uses.size() == 1) {
    Node* only = last->uses.front().node;
    if (!only || only->graph != value.graph || !is_no_op(*only, facts) || last->uses.front().input != 0) break;
    last = only->outputs[0];
  }
  return *last;
}

/// True if RANK axes that lie as LAYOUT says are all there are, or all but one for a single query.
bool has_axes_of_rows(const ScoreLayout& layout, size_t rank) {
  if (rank < 2 || (!layout.order.empty() && layout.rank() != rank)) return false;
  const size_t absent = layout.order.size() > rank ? layout.order.size() - rank : 0;
  return absent == 0 || (absent == 1 && layout.order[layout.order.size() - 2] == kNoAxis);
}

/// Takes an axis of SHAPE that LAYOUT does not name for that of a single query which it has none for.
void give_query_axis(ScoreLayout& layout, const Shape& shape) {
  if (layout.order.size() != shape.size() || shape.size() < 2) return;
  int64_t& query = layout.order[shape.size() - 2];
  for (int64_t axis = 0; axis < std::ssize(shape) && query == kNoAxis; ++axis)
    if (shape[static_cast<size_t>(axis)].is(1) && std::ranges::find(layout.order, axis) == layout.order.end()) query = axis;
}

/// How ESCAPING lies, which is of the shape OWN; nullopt where the softmax's result has no known rank.
std::optional<ScoreLayout> layout_of(const EscapingValue& escaping, const Reading& reading, const Shape& own, Facts& facts) {
  const MaybeShape first = facts.shape(*reading.probabilities.way[0]);
  if (!first || own.size() < 2) return std::nullopt;
  ScoreLayout above = reading.softmax_layout;
  // In the axes of an elementwise product, one of which is of the features.
  if (!has_axes_of_rows(above, first->size())) std::erase(above.order, kNoAxis);
  ScoreLayout moved = escaping.perm.empty() ? above : above.behind_moves(escaping.perm, first->size());
  give_query_axis(moved, own);
  return escaping.transposed ? moved.swapped(own.size()) : moved;
}

/// True if SINKS are the columns that are CUT off, in their order.
bool are_columns_of(const JoinedSinks& sinks, const CutColumns& cut) {
  return sinks.columns.count == (sinks.columns.in_front ? cut.in_front : cut.behind) &&
         cut.in_front + cut.behind == sinks.columns.count;
}

/// True if what is made of SCORES only serves ENDS: nothing of it is left where these are replaced.
bool serves_only(const Value& scores, const std::vector<const Node*>& ends) {
  constexpr size_t kMaxFollowers = 32;
  std::vector<const Value*> values{&scores};
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i]->is_output || values.size() > kMaxFollowers) return false;
    for (const Use& use : values[i]->uses) {
      if (std::ranges::find(ends, use.node) != ends.end()) continue;
      if (!use.node || use.node->graph != scores.graph || !use.node->bodies.empty()) return false;
      for (const Value* made : use.node->outputs)
        if (made && std::ranges::find(values, made) == values.end()) values.push_back(made);
    }
  }
  return true;
}

/// The roles of the axes of PLACED, of which the leading ones are BATCH and HEADS, or, if ARE_MERGED, may be both in one; empty
/// if they are not.
std::vector<Role> roles_of_rows(const Shape& placed, bool are_merged, const Dim& batch, const Dim& heads) {
  const auto product = [&placed](size_t begin, size_t end) {
    Dim size = 1;
    for (size_t axis = begin; axis < end; ++axis) size = size * placed[axis];
    return size;
  };
  const size_t leading = placed.size() - 2;
  if (are_merged && leading == 1 && placed[0] == batch * heads) return {Role::kHead, Role::kRow, Role::kFeature};
  for (size_t head_axes = 0; head_axes <= leading; ++head_axes)
    if (product(0, leading - head_axes) == batch && product(leading - head_axes, leading) == heads)
      return matmul_roles(placed.size(), Role::kRow, Role::kFeature, head_axes);
  return {};
}

/// VALUE, scores or probabilities, which lie as LAYOUT says; nullopt if the leading axes are not BATCH and HEADS, or
/// if it has none for several queries.
std::optional<OutputView> readable_rows(Value& value, const ScoreLayout& layout, const std::optional<LeadingSplit>& split,
                                        const Dim& batch, const Dim& heads, MatchContext& context) {
  const MaybeShape shape = context.facts.shape(value);
  if (!shape || !has_axes_of_rows(layout, shape->size())) return std::nullopt;
  // They have the roles of the product's first operand with keys in the place of features.
  const Shape placed = layout.placed(*shape);
  const std::vector<Role> roles = roles_of_rows(placed, split.has_value(), batch, heads);
  if (roles.empty()) return std::nullopt;
  ProductSide side{&value, roles, {}};
  side.roles.resize(shape->size());
  for (size_t i = 0; i < layout.order.size(); ++i) {
    if (layout.order[i] == kNoAxis) continue;
    side.roles[static_cast<size_t>(layout.order[i])] = roles[i];
    side.order.push_back(layout.order[i]);
  }
  return OutputView{&value, axes_of(side, split, context)};
}

}  // namespace

std::optional<OutputView> readable_probabilities(const Reading& reading, const std::optional<LeadingSplit>& split,
                                                 const Dim& batch, const Dim& heads, MatchContext& context) {
  const ProbabilityWalk& walk = reading.probabilities;
  const auto escaping = escaping_probabilities(walk, context.facts);
  const MaybeShape shape = escaping ? context.facts.shape(*escaping->value) : nullptr;
  const auto layout = shape ? layout_of(*escaping, reading, *shape, context.facts) : std::nullopt;
  if (!layout) return std::nullopt;
  const auto& sinks = reading.scores.sinks;
  if (sinks && !(walk.sinks && are_columns_of(*sinks, *walk.sinks) && escaping->value == walk.way[0])) return std::nullopt;
  return readable_rows(last_copy(*escaping->value, context.facts), *layout, split, batch, heads, context);
}

void set_scores_output(const Reading& reading, const SoftmaxSite& softmax, const std::optional<LeadingSplit>& split,
                       MatchContext& context, Sdpa& sdpa) {
  const auto found = scores_output(reading.scores);
  if (!found || reading.score_product.addend || sdpa.probabilities || !reading.probabilities.is_last_product()) return;
  // A softmax written out, and a guard that looks at the scores, read them several times.
  const bool is_read_again = !softmax.normaliser || reading.guard == GuardMeaning::kScores;
  if (found->mode == 2 && (is_read_again || reading.deepens_fill)) return;
  std::vector<const Node*> ends(reading.probabilities.products.begin(), reading.probabilities.products.end());
  if (softmax.divided) ends = {softmax.divided->producer};
  if (reading.probabilities.summed) ends = {reading.probabilities.last_node()};
  if (serves_only(*found->value, ends)) return;
  if (context.facts.type(*found->value) != sdpa.type) return;
  sdpa.scores_output = readable_rows(*found->value, {}, split, sdpa.batch, sdpa.query_heads, context);
  sdpa.scores_output_mode = found->mode;
}

}  // namespace attn_opt
