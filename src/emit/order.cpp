#include "src/emit/order.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "src/emit/outputs.h"
#include "src/graph/sorted_nodes.h"
#include "src/rewrite/operator_check.h"

namespace attn_opt {
namespace {

/// The node of the edit's graph that READER is, or is nested in: what the edit can stand before. Null for one that an earlier
/// edit wrote, since what stands before the same node stands behind it.
Node* in_graph(const Node& reader, const Edit& edit) {
  for (const auto& takeover : edit.takeovers())
    for (const Use& use : takeover.existing->uses) {
      if (use.node != &reader) continue;
      Node* node = edit.graph().holder_of(*use.node);
      return node && node->placement == Placement::kOfFile ? node : nullptr;
    }
  return nullptr;
}

/// The first node behind MAKER of those whose values EDIT takes over: it stands below all that they were computed from.
Node* behind(const Node& maker, const Edit& edit) {
  Node* place = nullptr;
  for (const auto& takeover : edit.takeovers()) {
    Node* own = takeover.existing->producer;
    const bool is_place =
        own && own->graph == maker.graph && own->placement == Placement::kOfFile && own->position > maker.position;
    if (is_place && (!place || own->position < place->position)) place = own;
  }
  return place;
}

bool stands_above(const Node& maker, const Node& anchor) {
  if (maker.graph != anchor.graph || maker.placement == Placement::kUnplaced) return true;
  return maker.position < anchor.position || (maker.position == anchor.position && maker.placement == Placement::kAdded);
}

/// A node that makes a taken-over value goes: with another output read it would compute the attention beside what is written
/// for it.
Matched<void> check_replaced(const Edit& edit, const std::vector<Node*>& removed) {
  const SortedNodes gone(removed);
  for (const auto& takeover : edit.takeovers()) {
    const Node* maker = takeover.existing->producer;
    if (!maker || gone.contains(maker)) continue;
    return missed("emit.outputs", maker, "'" + takeover.existing->name + "' is written, what else is read of its node is not");
  }
  return {};
}

/// MAKER and what it is made of that stands below the anchor of EDIT; nullopt if some of it cannot stand above: what reads a
/// value of TAKEN_OVER, is more than a plain node of the file, or stands far below.
std::optional<std::set<Node*>> to_raise(Node& maker, const Edit& edit, const std::unordered_set<const Value*>& taken_over) {
  constexpr size_t kMostRaised = 64, kFarthest = 4096;
  std::set<Node*> raised;
  std::vector<Node*> pending{&maker};
  while (!pending.empty()) {
    Node& node = *pending.back();
    pending.pop_back();
    if (!raised.insert(&node).second) continue;
    const bool is_plain = node.placement == Placement::kOfFile && node.graph == &edit.graph() && node.bodies.empty();
    const bool is_near =
        is_plain && node.position > edit.anchor().position && node.position - edit.anchor().position < kFarthest;
    if (!is_near || raised.size() > kMostRaised) return std::nullopt;
    for (const Value* input : node.inputs) {
      if (input && taken_over.count(input)) return std::nullopt;
      if (input && input->producer && !stands_above(*input->producer, edit.anchor())) pending.push_back(input->producer);
    }
  }
  return raised;
}

/// MAY_RAISE: what EDIT reads from below its anchor may be put above it.
Matched<void> check_order(Edit& edit, const std::vector<Node*>& removed, bool may_raise, Node** elsewhere) {
  const Node* reader = nullptr;
  if (!edit.keeps_order(removed, &reader)) {
    if (elsewhere) *elsewhere = in_graph(*reader, edit);
    return missed("emit.order", reader, "'" + reader->label() + "' stands before the product with V");
  }
  std::unordered_set<const Value*> taken_over;
  for (const auto& takeover : edit.takeovers()) {
    if (takeover.existing->removed)
      return missed("emit.order", &edit.anchor(), "'" + takeover.existing->name + "' is there no more");
    taken_over.insert(takeover.existing);
  }
  std::set<Node*> raised;
  for (const Node* node : edit.nodes())
    for (const Value* input : node->inputs) {
      if (!input) continue;
      if (input->removed) return missed("emit.order", node, "'" + input->name + "' is there no more");
      if (taken_over.count(input)) return missed("emit.order", node, "'" + input->name + "' is read and made");
      if (!input->producer || stands_above(*input->producer, edit.anchor())) continue;
      if (auto more = may_raise ? to_raise(*input->producer, edit, taken_over) : std::nullopt) {
        raised.merge(*more);
        continue;
      }
      if (elsewhere) *elsewhere = behind(*input->producer, edit);
      return missed("emit.order", input->producer, "'" + input->name + "' is made below what reads the scores");
    }
  std::vector<Node*> in_order(raised.begin(), raised.end());
  std::ranges::sort(in_order, {}, &Node::position);
  edit.raise(std::move(in_order));
  return {};
}

}  // namespace

Matched<void> complete(Emission& emission, Site& site, Node** elsewhere) {
  for (const auto& copy : site.match.copies) take_over_once(*copy.existing, *copy.made, site.build);
  emission.edit.adopt_unplaced();
  emission.removed = emission.edit.would_remove();
  emission.preconditions.insert(emission.preconditions.end(), site.assumed.begin(), site.assumed.end());
  emission.equal_sizes = site.equal_sizes;
  ATTN_OPT_DONE(check_replaced(emission.edit, emission.removed));
  ATTN_OPT_DONE(check_operators(emission.edit, site.facts));
  // At its own place nothing is below that it reads; where it stands above that, since scores or probabilities are read there,
  // V and its like may be.
  return check_order(emission.edit, emission.removed, &emission.edit.anchor() != site.match.insert_before, elsewhere);
}

}  // namespace attn_opt
