#include "patterns/scores/branch_scores.h"

#include <algorithm>
#include <map>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/scores/peel_form.h"

namespace attn_opt {
namespace {

/// Nodes of a branch that are looked at.
constexpr int kMaxInBranch = 16;

/// Makes in front of an If what its branches would.
class BranchReader {
 public:
  BranchReader(Node& node, MatchContext& context) : node_(node), facts_(context.facts), inner_(node, context) {}

  /// What the node would make if each branch were computed; null if a branch does more than work element by element.
  Value* chosen(size_t output) {
    std::map<bool, Value*> made;
    if (!node_.input(0)) return nullptr;
    for (const Graph* branch : node_.bodies) {
      const auto* then_branch = node_.attribute("then_branch");
      const bool is_then = then_branch && branch->proto() == &then_branch->g();
      Value* value = output < branch->outputs().size() ? branch->outputs()[output] : nullptr;
      made[is_then] = value ? outside(*value) : nullptr;
    }
    if (!made[true] || !made[false] || !are_alike(*made[true], *made[false])) return nullptr;
    return inner_.build().node("Where", {node_.inputs[0], made[true], made[false]});
  }

 private:
  /// VALUE as a value of the graph around its branch.
  Value* outside(Value& made) {
    Value& value = canonical(made, facts_);
    if (std::ranges::find(node_.bodies, value.graph) == node_.bodies.end()) return &value;
    if (const Tensor* constant = facts_.constant(value)) return inner_.build().constant(*constant);
    const Node* node = value.producer;
    const bool is_pure = node && value.output == 0 && node->bodies.empty() && has(*node, Trait::kElementwise);
    if (!is_pure || ++looked_at_ > kMaxInBranch) return nullptr;
    std::vector<Value*> inputs;
    for (Value* input : node->inputs) {
      inputs.push_back(input ? outside(*input) : nullptr);
      if (input && !inputs.back()) return nullptr;
    }
    return inner_.again(*node, inputs);
  }

  /// True if a Where of ONE and OTHER enlarges neither.
  bool are_alike(const Value& one, const Value& other) {
    const MaybeShape shape = facts_.shape(one), other_shape = facts_.shape(other), condition = facts_.shape(*node_.inputs[0]);
    return shape && other_shape && condition && *shape == *other_shape && condition->size() <= shape->size();
  }

  Node& node_;
  Facts& facts_;
  InnerValues inner_;
  int looked_at_ = 0;
};

}  // namespace

Ways peel_branches(Node& node, const ScoreWalk& walk, MatchContext& context) {
  Value* chosen = BranchReader(node, context).chosen(static_cast<size_t>(walk.value->output));
  if (!chosen) return missed("scores.operator", &node, node.op(), walk.peeled);
  return peel_form(*chosen->producer, walk, context);
}

}  // namespace attn_opt
