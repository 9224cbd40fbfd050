#include "src/emit/equal_sizes.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "attn_opt/operator_traits.h"
#include "src/match/sizes/sole_atom.h"

namespace attn_opt {
namespace {

/// Values looked at above one whose size is said.
constexpr size_t kMaxValues = 1024;

bool is_name(const Dim& size) { return !symbol_name(size).empty(); }

/// True if VALUE is computed from what some of NODES makes or made, or from too much to tell.
bool is_made_from(const Value& value, std::span<const Node* const> nodes) {
  const auto may_stand_above = [&](const Node* node) {
    if (node->graph != value.graph) return true;
    // An attention makes now what was made of it: all that stands below may be.
    return node->removed && value.producer && value.producer->position >= node->position;
  };
  if (std::ranges::any_of(nodes, may_stand_above)) return true;
  const std::unordered_set<const Node*> makers(nodes.begin(), nodes.end());
  const Node* first = *std::ranges::min_element(nodes, {}, &Node::position);
  std::vector<const Value*> pending{&value};
  std::unordered_set<const Value*> seen{&value};
  for (size_t i = 0; i < pending.size(); ++i) {
    const Node* maker = pending[i]->producer;
    if (makers.contains(maker) || i == kMaxValues) return true;
    if (!maker || maker->position < first->position) continue;
    for (const Value* input : maker->inputs)
      if (input && input->graph == value.graph && seen.insert(input).second) pending.push_back(input);
  }
  return false;
}

}  // namespace

bool is_one_of_equals(const Dim& size, const Value& value, std::span<Value* const> read, Facts& facts) {
  if (facts.assumptions().empty()) return false;
  std::set<std::string> names;
  for (const AtomRef& atom : size.atoms()) names.insert(atom->name);
  return std::ranges::any_of(facts.assumptions_about(names), [&](const SizeAssumption* equal) {
    const bool is_about_size = equal->one == size || equal->other == size;
    const auto is_elementwise = [](const Node* node) { return has(*node, Trait::kElementwise); };
    const bool may_broadcast =
        (is_name(equal->one) && is_name(equal->other)) || std::ranges::any_of(equal->nodes, is_elementwise);
    return is_about_size && may_broadcast && is_made_from(value, equal->nodes) && !facts.proves(*equal, read);
  });
}

void join_equals(Shape& shape, const Value& value, Facts& facts) {
  if (facts.assumptions().empty()) return;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (!is_one_of_equals(shape[axis], value, {}, facts)) continue;
    const MaybeShape each = facts.shape_of_each_run(value);
    const Atom* atom = each.has_rank(shape.size()) ? sole_atom((*each)[axis]) : nullptr;
    if (atom && is_broadcast(*atom)) shape[axis] = (*each)[axis];
  }
}

}  // namespace attn_opt
