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

bool is_name(const Dim& size) {
  const Atom* atom = sole_atom(size);
  return atom && atom->kind == Atom::Kind::kSymbol;
}

/// True if SIZE is what others broadcast to.
bool is_broadcast(const Dim& size) { return is_name(size) && !sole_atom(size)->operands.empty(); }

/// True if VALUE is computed from what NODE makes or made, or from too much to tell.
bool is_made_from(const Value& value, const Node& node) {
  if (node.graph != value.graph) return true;
  // An attention makes now what was made of it: all that stands below may be.
  if (node.removed) return value.producer && value.producer->position >= node.position;
  std::vector<const Value*> pending{&value};
  std::unordered_set<const Value*> seen{&value};
  for (size_t i = 0; i < pending.size(); ++i) {
    const Node* maker = pending[i]->producer;
    if (maker == &node || i == kMaxValues) return true;
    if (!maker || maker->position < node.position) continue;
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
    const bool may_broadcast = has(*equal->node, Trait::kElementwise) || (is_name(equal->one) && is_name(equal->other));
    return is_about_size && may_broadcast && is_made_from(value, *equal->node) && !facts.proves(*equal, read);
  });
}

void join_equals(Shape& shape, const Value& value, Facts& facts) {
  if (facts.assumptions().empty()) return;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (!is_one_of_equals(shape[axis], value, {}, facts)) continue;
    const MaybeShape each = facts.shape_of_each_run(value);
    if (each.has_rank(shape.size()) && is_broadcast((*each)[axis])) shape[axis] = (*each)[axis];
  }
}

}  // namespace attn_opt
