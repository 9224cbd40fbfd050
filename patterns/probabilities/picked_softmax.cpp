#include "patterns/probabilities/picked_softmax.h"

#include <limits>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/scores/merged_axes.h"
#include "patterns/scores/selected_scores.h"
#include "src/match/node_forms.h"

namespace attn_opt {
namespace {

/// Nodes between a Softmax and what picks of it.
constexpr int kMostBetween = 3;

/// A Softmax, and the node that regroups what it makes; null if it is picked of as it lies.
struct PickedSource {
  Node* softmax = nullptr;
  Node* regrouping = nullptr;
  bool has_others = false;  ///< that read what it makes, on the way
};

PickedSource source_of(const Node& node) {
  PickedSource source;
  bool has_others = false;
  const Value* read = node.input(0);
  for (int step = 0; step <= kMostBetween && read && read->producer; ++step) {
    Node& maker = *read->producer;
    has_others |= read->uses.size() > 1;
    if (maker.is("Softmax")) source.softmax = &maker;
    const bool regroups = has(maker, Trait::kRegroups) && !source.regrouping;
    if (source.softmax || (!regroups && !maker.is("Cast"))) break;
    if (regroups) source.regrouping = &maker;
    read = maker.input(0);
  }
  source.has_others = has_others;
  return source.softmax ? source : PickedSource();
}

/// Of SCORES, whose axes REGROUPED parts: what NODE, a Gather of one, takes of an axis that one is parted into; null if it
/// takes anything else.
Value* picked_of_parted(Node& node, Value& scores, const Shape& regrouped, MatchContext& context) {
  const auto index = node.input(1) ? context.facts.scalar(*node.inputs[1]) : std::nullopt;
  const auto axis = axis_in(node.int_attribute("axis", 0), regrouped.size());
  const MaybeShape whole = context.facts.shape(scores), list = node.input(1) ? context.facts.shape(*node.inputs[1]) : nullptr;
  if (!index || !axis || !whole || !list || !list->empty()) return nullptr;
  const auto picked = static_cast<int64_t>(index.value_or(0));
  const auto runs = runs_merged(regrouped, *whole);
  for (size_t own = 0; runs && own < runs->size(); ++own) {
    const AxisRun& run = (*runs)[own];
    const bool is_outer = run.first == *axis, is_parted = run.count == 2 && (is_outer || run.first + 1 == *axis);
    if (run.count != 1 && !is_parted) return nullptr;
    const Dim &size = regrouped[*axis], &behind = regrouped[run.first + run.count - 1];
    if (!is_parted || !size.is_constant() || !behind.is_constant()) continue;
    const int64_t at = picked < 0 ? picked + size.value() : picked;
    const int64_t first = is_outer ? at * behind.value() : at, step = is_outer ? 1 : behind.value();
    const int64_t end = is_outer ? first + behind.value() : std::numeric_limits<int64_t>::max();
    InnerValues inner(node, context);
    std::vector<Value*> inputs{&scores};
    for (const int64_t number : {first, end, static_cast<int64_t>(own), step}) inputs.push_back(inner.build().ints({number}));
    return inner.build().node("Slice", inputs);
  }
  return nullptr;
}

}  // namespace

bool may_pick_of_softmax(const Node& node) {
  const PickedSource source = source_of(node);
  return source.softmax && source.has_others;
}

std::optional<SoftmaxSite> picked_softmax(Node& node, MatchContext& context) {
  const PickedSource source = source_of(node);
  if (!source.softmax) return std::nullopt;
  Facts& facts = context.facts;
  SoftmaxSite site = softmax_operator(*source.softmax, context);
  Value& picked_of = source.regrouping ? *source.regrouping->outputs[0] : *node.inputs[0];
  Value& regrouped_of = source.regrouping ? *source.regrouping->inputs[0] : picked_of;
  const bool are_copies = &canonical(*node.inputs[0], facts) == &canonical(picked_of, facts) &&
                          &canonical(regrouped_of, facts) == &canonical(*site.output, facts);
  const MaybeShape rows = facts.shape(*site.output), whole = facts.shape(*node.inputs[0]);
  if (!are_copies || site.keys != 0 || !rows || !whole || rows->empty() || whole->empty() || rows->back() != whole->back())
    return std::nullopt;
  const auto axis = picked_axis(*node.outputs[0], facts);
  if (axis && *axis + 1 == whole->size()) return std::nullopt;
  Value* scores = site.input;
  if (!axis) {
    site.input = node.is("Gather") ? picked_of_parted(node, *scores, *whole, context) : nullptr;
  } else {
    if (source.regrouping) scores = InnerValues(*source.softmax, context).again(*source.regrouping, 0, scores);
    site.input = picked_as(*node.outputs[0], *scores, *axis, context);
  }
  site.output = node.outputs[0];
  return site.input ? std::optional(site) : std::nullopt;
}

}  // namespace attn_opt
