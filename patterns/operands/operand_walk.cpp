#include "patterns/operands/operand_walk.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "attn_opt/canonical.h"
#include "attn_opt/matcher.h"
#include "attn_opt/operator_traits.h"
#include "patterns/layout_checks.h"
#include "patterns/operands/axis_copies.h"
#include "patterns/operands/head_region.h"
#include "patterns/readers.h"
#include "patterns/scaled_values.h"
#include "patterns/scores/form_reader.h"
#include "src/match/permutation.h"

namespace attn_opt {
namespace {

constexpr int kMaxOperandSteps = 64;

/// The view of the operand that a number is multiplied with, if NODE does that; factors with more axes repeat it.
std::optional<OperandView> before_scale(Node& node, const OperandView& view, MatchContext& context) {
  const auto [scaled, factor] = scaled_by(node, context);
  if (!scaled) return std::nullopt;
  const MaybeShape after = context.facts.shape(*node.outputs[0]), before = context.facts.shape(*scaled);
  auto axes = after && before ? view.axes.before_expand(*before, *after) : std::nullopt;
  if (!axes) return std::nullopt;
  OperandView next = view;
  next.value = scaled;
  next.axes = *std::move(axes);
  next.scale = view.scale * factor;
  return next;
}

/// True if VALUE is a graph input seen through layout and selection: a past, or a past whose beams were reordered.
bool comes_from_graph_input(Value& value, Facts& facts) {
  Value* seen = &value;
  for (int step = 0; step < 8; ++step) {
    seen = &canonical(*seen, facts);
    if (!seen->producer) return seen->is_input;
    const Node& node = *seen->producer;
    if (!has(node, Trait::kMoves) && !node.is("Split") && !node.is("Cast")) return false;
    seen = node.inputs[0];
  }
  return false;
}

/// The view of the new part where NODE is Concat(past, new) along the rows of (B, Hkv, S, D).
std::optional<OperandView> before_cache(Node& node, const OperandView& view, MatchContext& context) {
  if (!node.is("Concat") || node.inputs.size() != 2 || !view.axes.is_bhsd()) return std::nullopt;
  const MaybeShape fresh = context.facts.shape(*node.inputs[1]);
  if (!fresh || fresh->size() != 4) return std::nullopt;
  const int64_t axis = node.int_attribute("axis", 0);
  if ((axis != 2 && axis != -2) || !comes_from_graph_input(*node.inputs[0], context.facts)) return std::nullopt;
  auto axes = view.axes.with_size(Role::kRow, 2, (*fresh)[2]);
  if (!axes) return std::nullopt;
  // What a description made is no present of the model's.
  Value* present = node.placement == Placement::kUnplaced ? nullptr : node.outputs[0];
  return OperandView{node.inputs[1], *std::move(axes), view.scale, &canonical(*node.inputs[0], context.facts), present};
}

std::optional<AxisMap> axes_before(Node& node, const OperandView& view, MatchContext& context) {
  const AxisMap& axes = view.axes;
  const MaybeShape before = context.facts.shape(*node.inputs[0]);
  if (!before) return std::nullopt;
  if (node.is("Transpose")) {
    const std::vector<int64_t> perm = permutation(node, axes.rank());
    return perm.empty() ? std::nullopt : std::optional(axes.before_transpose(perm));
  }
  if (has(node, Trait::kRegroups)) return axes.regrouped(*before);
  const MaybeShape after = context.facts.shape(*node.outputs[0]);
  if (after && !view.past && (node.is("Expand") || node.is("Tile"))) return axes.before_expand(*before, *after);
  return std::nullopt;
}

/// The view of what VIEW.value holds copies of, entry by entry.
std::optional<OperandView> before_copies(const OperandView& view, const std::optional<AxisCopies>& copies, Facts& facts) {
  const MaybeShape after = facts.shape(*view.value);
  auto axes = copies && after ? axes_before_copies(view.axes, *after, *copies) : std::nullopt;
  if (!axes) return std::nullopt;
  return OperandView{copies->source, *std::move(axes), view.scale};
}

/// The view before a node that only moves or repeats what it reads.
std::optional<OperandView> before_movement(Node& node, const OperandView& view, MatchContext& context) {
  if (auto axes = axes_before(node, view, context))
    return OperandView{node.inputs[0], *std::move(axes), view.scale, view.past, view.present};
  return view.past ? std::nullopt : before_copies(view, copies_along_axis(*view.value, context.facts), context.facts);
}

/// True if what OPERAND was seen through serves nothing but OPERAND.
bool serves_alone(const Operand& operand, Facts& facts) {
  return std::ranges::all_of(operand.views, [&](const OperandView& view) {
    const Readers readers = readers_of(*view.value, facts);  // none reads what a description made
    return readers.all.size() <= 1 && !readers.is_output && !readers.is_sized;
  });
}

/// The view of what is repeated before a region that acts within each head.
std::optional<OperandView> before_region(const Operand& operand, MatchContext& context) {
  const OperandView& view = operand.views.back();
  const auto axis = view.axes.axis_of(Role::kHead, std::vector<bool>(view.axes.rank()));
  if (!axis || view.axes.size(Role::kHead).is(1) || !serves_alone(operand, context.facts)) return std::nullopt;
  return before_copies(view, copies_of_region(*view.value, static_cast<size_t>(*axis), context), context.facts);
}

/// What OPERAND, which NODE makes, can be read from too; empty if NODE is where it comes from. The walk goes on from the last.
std::vector<OperandView> views_before(Node& node, const Operand& operand, MatchContext& context) {
  const OperandView& view = operand.views.back();
  std::vector<OperandView> found;
  const auto add = [&found](std::optional<OperandView> next) {
    if (next) found.push_back(*std::move(next));
    return !found.empty();
  };
  if (view.past) {
    add(before_movement(node, view, context));
    return found;
  }
  if (add(before_scale(node, view, context))) return found;
  // A past and new rows that are both repeated are a cache of what they repeat, too.
  if (add(before_cache(node, view, context)) || !add(before_movement(node, view, context)))
    add(before_region(operand, context));
  return found;
}

/// The views on the way up from START, each of those BEFORE the node that makes the one below.
template <class Before>
Operand walk_up(OperandView start, Facts& facts, Before before) {
  Operand operand{{std::move(start)}};
  for (int step = 0; step < kMaxOperandSteps; ++step) {
    Value& source = canonical(*operand.views.back().value, facts);
    if (&source != operand.views.back().value) {
      operand.views.push_back(OperandView(operand.views.back()));
      operand.views.back().value = &source;
    }
    Node* node = source.producer;
    if (!node || source.output != 0 || !node->domain().empty() || node->inputs.empty() || !node->inputs[0]) break;
    std::vector<OperandView> next = before(*node, operand);
    if (next.empty()) break;
    std::ranges::move(next, std::back_inserter(operand.views));
  }
  return operand;
}

}  // namespace

std::optional<AxisMap> axes_after(const Node& node, const AxisMap& axes, MatchContext& context) {
  if (is_no_op(node, context.facts)) return axes;
  if (node.is("Transpose")) {
    const std::vector<int64_t> perm = permutation(node, axes.rank());
    return perm.empty() ? std::nullopt : std::optional(axes.after_transpose(perm));
  }
  const MaybeShape after = context.facts.shape(*node.outputs[0]);
  if (!has(node, Trait::kRegroups) || !after) return std::nullopt;
  return axes.regrouped(*after);
}

Operand walk_operand(OperandView start, MatchContext& context) {
  return walk_up(std::move(start), context.facts,
                 [&](Node& node, const Operand& operand) { return views_before(node, operand, context); });
}

Operand walk_movement(OperandView start, MatchContext& context) {
  return walk_up(std::move(start), context.facts, [&](Node& node, const Operand& operand) {
    auto next = before_movement(node, operand.views.back(), context);
    return next ? std::vector{*std::move(next)} : std::vector<OperandView>();
  });
}

std::vector<OutputView> walk_output(Value& value, const AxisMap& axes, MatchContext& context) {
  std::vector<OutputView> views{{&value, axes}};
  for (int step = 0; step < kMaxOperandSteps; ++step) {
    const OutputView& view = views.back();
    const Readers readers = readers_of(*view.value, context.facts);
    const Reader* reader = readers.only_one() ? &readers.all[0] : nullptr;
    if (!reader || !reader->node || reader->node->graph != value.graph || reader->input != 0) break;
    const Node& node = *reader->node;
    if (node.outputs.empty() || !node.outputs[0]) break;
    auto next = axes_after(node, view.axes, context);
    if (!next) break;
    views.push_back({node.outputs[0], *std::move(next)});
  }
  return views;
}

}  // namespace attn_opt
