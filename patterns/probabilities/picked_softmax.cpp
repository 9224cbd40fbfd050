#include "patterns/probabilities/picked_softmax.h"

#include <algorithm>
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
constexpr int kMostBetween = 8;

struct PickedSource {
  Node* softmax = nullptr;
  bool has_others = false;  ///< that read it on the way
};

PickedSource source_of(const Node& node) {
  PickedSource source;
  const Value* read = node.input(0);
  for (int step = 0; step <= kMostBetween && read && read->producer; ++step) {
    Node& maker = *read->producer;
    source.has_others |= read->uses.size() > 1;
    if (maker.is("Softmax")) {
      source.softmax = &maker;
      break;
    }
    if (!has(maker, Trait::kRegroups) && !may_be_no_op(maker)) break;
    read = maker.input(0);
  }
  return source.softmax ? source : PickedSource();
}

/// True if VALUE is SOURCE, regrouped or not: by REGROUPING last, if that is set.
bool is_regrouped(Value& value, Value& source, Node*& regrouping, Facts& facts) {
  Value* seen = &canonical(value, facts);
  for (int step = 0; step < kMostBetween && seen != &canonical(source, facts); ++step) {
    if (!seen->producer || !has(*seen->producer, Trait::kRegroups)) return false;
    if (!regrouping) regrouping = seen->producer;
    seen = &canonical(*seen->producer->inputs[0], facts);
  }
  return seen == &canonical(source, facts);
}

/// SCORES of the shape ROWS as REGROUPING makes WHOLE of their softmax.
Value* regrouped_as(Value& scores, const Shape& rows, const Shape& whole, Node* regrouping, MatchContext& context) {
  if (!regrouping || rows == whole) return &scores;
  return InnerValues(*regrouping, context).again(*regrouping, 0, &scores);
}

/// Of SCORES, whose axes REGROUPED parts: what NODE, a Gather of one, takes of an axis that one is parted into; null if it
/// takes anything else.
Value* picked_of_parted(Node& node, Value& scores, const Shape& regrouped, MatchContext& context) {
  const auto index = node.input(1) ? context.facts.scalar(*node.inputs[1]) : std::nullopt;
  const auto axis = axis_in(node.int_attribute("axis", 0), regrouped.size());
  const MaybeShape whole = context.facts.shape(scores), list = node.input(1) ? context.facts.shape(*node.inputs[1]) : nullptr;
  if (!index || !axis || !whole || !list || !list->empty()) return nullptr;
  const auto picked = static_cast<int64_t>(*index);
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
  const auto is_read = [](const Value* part) { return part && !part->uses.empty(); };
  return source.softmax && (source.has_others || std::ranges::count_if(node.outputs, is_read) > 1);
}

Node* picked_source(const Node& node) { return source_of(node).softmax; }

std::optional<SoftmaxSite> picked_softmax(Value& part, MatchContext& context) {
  Node& node = *part.producer;
  Node* softmax = picked_source(node);
  if (!softmax) return std::nullopt;
  Facts& facts = context.facts;
  SoftmaxSite site = softmax_operator(*softmax, context);
  const MaybeShape rows = facts.shape(*site.output), whole = facts.shape(*node.inputs[0]);
  if (site.keys != 0 || !rows || !whole || rows->empty() || whole->empty() || rows->back() != whole->back())
    return std::nullopt;
  Node* regrouping = nullptr;  // the last, of all
  const bool is_of_softmax = is_regrouped(*node.inputs[0], *site.output, regrouping, facts);
  const auto axis = picked_axis(part, facts);
  if (!is_of_softmax || (axis && *axis + 1 == whole->size())) return std::nullopt;
  site.input = axis ? picked_as(part, *regrouped_as(*site.input, *rows, *whole, regrouping, context), *axis, context)
               : node.is("Gather") ? picked_of_parted(node, *site.input, *whole, context)
                                   : nullptr;
  site.output = &part;
  return site.input ? std::optional(site) : std::nullopt;
}

}  // namespace attn_opt
