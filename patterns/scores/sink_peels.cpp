#include "patterns/scores/sink_peels.h"

#include <cmath>
#include <utility>

#include "patterns/inner_values.h"
#include "patterns/joined_parts.h"
#include "patterns/scores/joined_keys.h"

namespace attn_opt {
namespace {

/// Columns of one number that a Pad may put beside scores as sinks: they are written out, and models have one to four.
constexpr int64_t kMostPaddedSinks = 1024;

/// Sinks that a node puts beside SCORES, in the order of their columns, and how many of these stand at each end.
struct Beside {
  Value* scores = nullptr;
  std::vector<Value*> sinks;
  CutColumns columns;
};

/// What the Concat NODE puts beside the scores, which may be those of several keys, of columns that are CUT off; nullopt if it
/// puts there anything else.
std::optional<Beside> beside_scores(Node& node, const ScoreWalk& walk, MatchContext& context) {
  Facts& facts = context.facts;
  const MaybeShape after = facts.shape(*node.outputs[0]);
  if (!after || !joins_keys(node, walk, after->size())) return std::nullopt;
  const int64_t rank = std::ssize(*after), keys = axis_of_keys(walk, after->size());
  // The columns of an input where LEFT are still to be found; 0 if it is none of these.
  const auto columns_of = [&](const Value& input, int64_t left) {
    const MaybeShape shape = facts.shape(input);
    if (!shape || std::ssize(*shape) != rank) return int64_t{0};
    const Dim& count = (*shape)[static_cast<size_t>(keys)];
    return count.is_constant() && count.value() <= left ? count.value() : 0;
  };
  const CutColumns& cut = *walk.cut_off;
  Beside found;
  auto first = node.inputs.begin(), last = node.inputs.end() - 1;
  for (; first != last; ++first) {
    const int64_t count = columns_of(**first, cut.in_front - found.columns.in_front);
    if (count <= 0) break;
    found.columns.in_front += count;
  }
  for (; first != last; --last) {
    const int64_t count = columns_of(**last, cut.behind - found.columns.behind);
    if (count <= 0) break;
    found.columns.behind += count;
  }
  if ((first != last && found.columns != cut) || found.columns.is_none()) return std::nullopt;
  found.scores = first == last ? *first : InnerValues(node, context).concat({first, last + 1}, keys);
  found.sinks.assign(node.inputs.begin(), first);
  found.sinks.insert(found.sinks.end(), last + 1, node.inputs.end());
  return found;
}

/// WALK, settled, where NODE may put sinks beside scores.
Matched<ScoreWalk> before_sinks(Node& node, const ScoreWalk& below, MatchContext& context) {
  ATTN_OPT_MATCH(ScoreWalk walk, settled(below, context));
  if (!walk.cut_off || walk.cut_off->is_none()) return missed("scores.operator", &node, node.op(), walk.peeled);
  const bool is_plain = walk.softcap == 0 && walk.tensor_scales.empty() && !walk.clamp;
  if (!is_plain || (walk.split && !walk.split->keeps_keys()) || !walk.frames.empty())
    return missed("scores.sinks", &node, "scores and sinks are changed together", walk.peeled);
  return walk;
}

/// WALK above NODE, which puts SINKS in their places, beside those that were found before: the softmax adds up columns in any
/// order, and order matters only to what is laid over all of them.
Matched<ScoreWalk> with_sinks(Node& node, const ScoreWalk& walk, const Beside& found, MatchContext& context) {
  const std::optional<JoinedSinks>& outer = walk.sinks;
  if (outer && (outer->scale != walk.scale || outer->terms != walk.terms.size()))
    return missed("scores.sinks", &node, "sinks are changed together with scores and other sinks", walk.peeled);
  const bool any_in_front = found.columns.in_front > 0 || (outer && outer->columns.in_front);
  const bool any_behind = found.columns.behind > 0 || (outer && !outer->columns.in_front);
  if (any_in_front && any_behind && !walk.terms.empty())
    return missed("scores.sinks", &node, "sinks at both ends, and what is laid over all", walk.peeled);
  std::vector<Value*> values;
  if (outer && outer->columns.in_front) values.push_back(outer->value);
  values.insert(values.end(), found.sinks.begin(), found.sinks.end());
  if (outer && !outer->columns.in_front) values.push_back(outer->value);
  InnerValues inner(*walk.reader, context);
  ScoreWalk next = step(walk, *found.scores, node.op() + "(sinks)");
  const int64_t count = found.columns.in_front + found.columns.behind + (outer ? outer->columns.count : 0);
  next.sinks = {values.size() == 1 ? values[0] : inner.concat(values, -1),
                {count, !any_behind},
                walk.scale,
                walk.terms.size(),
                frame_at(node, walk, context)};
  next.cut_off = walk.cut_off->without(found.columns);
  return next;
}

}  // namespace

Ways peel_concat(Node& node, const ScoreWalk& below, MatchContext& context) {
  const MaybeShape after = context.facts.shape(*node.outputs[0]);
  if (!below.cut_off || below.cut_off->is_none() || !after || !joins_keys(node, below, after->size())) {
    if (Value* whole = joined_parts(node, node, context)) return std::vector{step(below, *whole, node.op() + "(parts)")};
    ATTN_OPT_MATCH(ScoreWalk next, peel_joined_keys(node, below, context));
    return std::vector{std::move(next)};
  }
  ATTN_OPT_MATCH(const ScoreWalk walk, before_sinks(node, below, context));
  auto found = beside_scores(node, walk, context);
  if (!found) return missed("scores.sinks", &node, "other columns beside the scores than are cut off", walk.peeled);
  for (Value*& sinks : found->sinks) {
    ATTN_OPT_MATCH(sinks, placed_term(*sinks, node, walk, context));
  }
  ATTN_OPT_MATCH(ScoreWalk next, with_sinks(node, walk, *found, context));
  return std::vector{std::move(next)};
}

Ways peel_padding(Node& node, const ScoreWalk& below, MatchContext& context) {
  ATTN_OPT_MATCH(const ScoreWalk walk, before_sinks(node, below, context));
  const MaybeShape after = context.facts.shape(*node.outputs[0]);
  const size_t rank = after ? after->size() : 0;
  const auto added =
      after ? padded_columns(node, rank - 1 - static_cast<size_t>(axis_of_keys(walk, rank)), context.facts) : std::nullopt;
  const auto number = node.input(2) ? context.facts.uniform(*node.inputs[2]) : std::optional(0.0);
  const bool is_cut_off = added && added->in_front <= walk.cut_off->in_front && added->behind <= walk.cut_off->behind &&
                          added->in_front >= 0 && added->behind >= 0 && !added->is_none();
  if (!is_cut_off || !number || walk.sinks)
    return missed("scores.sinks", &node, "other columns beside the scores than are cut off", walk.peeled);
  if (*number == -INFINITY && walk.terms.empty()) {
    ScoreWalk next = step(walk, *node.inputs[0], "Pad(nothing)");
    next.cut_off = walk.cut_off->without(*added);
    return std::vector{std::move(next)};
  }
  if (added->in_front > kMostPaddedSinks || added->behind > kMostPaddedSinks)
    return missed("scores.sinks", &node, "more than " + std::to_string(kMostPaddedSinks) + " columns of one number",
                  walk.peeled);
  Dims dims(rank, 1);
  dims.back() = added->in_front + added->behind;
  const std::vector<double> numbers(static_cast<size_t>(dims.back()), *number);
  Value* sinks = InnerValues(*walk.reader, context)
                     .build()
                     .constant(Tensor::of<double>(dims, numbers), context.facts.type(*node.outputs[0]));
  ATTN_OPT_MATCH(ScoreWalk next, with_sinks(node, walk, {node.inputs[0], {sinks}, *added}, context));
  return std::vector{std::move(next)};
}

Matched<JoinedSinks> sinks_beside(std::vector<Value*> columns, const ScoreWalk& walk, MatchContext& context) {
  Node& node = *walk.reader;
  const DataType type = context.facts.type(*walk.value);
  InnerValues inner(node, context);
  for (Value*& column : columns) {
    if (context.facts.type(*column) != type)
      column = inner.build().node("Cast", {column}, {GraphBuilder::attribute("to", int64_t{type})});
    ATTN_OPT_MATCH(column, placed_term(*column, node, walk, context));
    if (context.facts.shape(*column).known() != context.facts.shape(*columns[0]).known())
      return missed("scores.sinks", &node, "sinks of several shapes");
  }
  Value* joined = columns.size() == 1 ? columns[0] : inner.concat(columns, -1);
  return JoinedSinks{joined, {std::ssize(columns), false}, 1, 0, frame_at(node, walk, context)};
}

}  // namespace attn_opt
