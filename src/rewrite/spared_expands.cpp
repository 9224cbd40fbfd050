#include "src/rewrite/spared_expands.h"

#include <algorithm>
#include <optional>

#include "attn_opt/canonical.h"
#include "attn_opt/facts.h"
#include "attn_opt/operator_traits.h"

namespace attn_opt {
namespace {

/// Nodes that are looked at for one behind others that may change nothing.
constexpr int kMostCopies = 4;

bool repeats(const Node* node) { return node && (node->is("Expand") || node->is("Tile")) && node->input(0); }

/// True if VALUE may be what an Expand or Tile makes, or a copy of that.
bool may_be_repeated(const Value* value) {
  for (int step = 0; step < kMostCopies && value && value->producer; ++step, value = value->producer->input(0)) {
    if (repeats(value->producer)) return true;
    if (!may_be_no_op(*value->producer)) break;
  }
  return false;
}

/// True if something may add up VALUE or a copy of it: a reduction, or a product with a column of ones.
bool may_be_added_up(const Value* value, int steps = kMostCopies) {
  return value && steps > 0 && std::ranges::any_of(value->uses, [steps](const Use& use) {
           if (!use.node) return false;
           if (has(*use.node, Trait::kReduces) || use.node->is("MatMul") || use.node->is("Einsum")) return true;
           return may_be_no_op(*use.node) && may_be_added_up(use.node->output(0), steps - 1);
         });
}

bool may_be_spared(const Node& node, size_t input) {
  return !node.removed && node.is("Mul") && node.inputs.size() == 2 && may_be_repeated(node.inputs[input]) &&
         node.inputs[1 - input] && may_be_added_up(node.output(0));
}

/// True if SOURCE broadcasts to WHOLE.
bool broadcasts_to(const Shape& source, const Shape& whole) {
  if (source.size() > whole.size()) return false;
  const size_t absent = whole.size() - source.size();
  for (size_t axis = 0; axis < source.size(); ++axis)
    if (!source[axis].is(1) && source[axis] != whole[absent + axis]) return false;
  return true;
}

/// What input number INPUT of NODE, a Mul, is repeated from, which makes the same there; null if nothing is.
Value* repeated_from(const Node& node, size_t input, Facts& facts) {
  const Node* maker = canonical(*node.inputs[input], facts).producer;
  if (!repeats(maker) || maker->graph != node.graph) return nullptr;
  Value* source = maker->inputs[0];
  const MaybeShape own = facts.shape(*source), whole = facts.shape(*node.outputs[0]),
                   other = facts.shape(*node.inputs[1 - input]);
  return own && whole && other && *other == *whole && broadcasts_to(*own, *whole) ? source : nullptr;
}

}  // namespace

void spare_expands(ModelGraph& view, const TensorStore& tensors, InlinedCalls* calls, Redirections& redirections) {
  std::optional<Facts> facts;  // most models have no such Mul
  for (const auto& graph : view.graphs())
    for (Node* node : graph->nodes())
      for (const size_t input : {0, 1}) {
        if (!may_be_spared(*node, input)) continue;
        if (!facts) facts.emplace(view, tensors, false);
        Value* source = repeated_from(*node, input, *facts);
        Value& read = *node->inputs[input];
        // Calls know one name for another, whoever reads it.
        if (!source || (calls && read.uses.size() > 1)) continue;
        if (calls) calls->read_instead(read.name, source->name);
        redirections.set_input(view, *node, static_cast<int>(input), *source);
        if (read.producer) view.remove_if_dead(*read.producer);
      }
}

}  // namespace attn_opt
