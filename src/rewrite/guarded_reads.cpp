#include "src/rewrite/guarded_reads.h"

#include <cmath>
#include <map>
#include <optional>

#include "attn_opt/facts.h"
#include "attn_opt/operator_traits.h"

namespace attn_opt {
namespace {

/// Nodes between a product and its guard that only move it.
constexpr int kMostMoves = 4;

/// True if VALUE is a product, or one that was moved.
bool is_product(const Value& value) {
  const Node* node = value.producer;
  for (int step = 0; step < kMostMoves && node && has(*node, Trait::kKeepsAll); ++step)
    node = node->input(0) ? node->input(0)->producer : nullptr;
  return node && (node->is("MatMul") || node->is("Einsum"));
}

/// y = Where(IsNaN(x), c, x), c being a number.
struct Guard {
  Value* made = nullptr;
  double number = 0;
};

class Guards {
 public:
  Guards(ModelGraph& view, const TensorStore& tensors) : view_(view), tensors_(tensors) {}

  /// Enters NODE if it is a guard of a product.
  void enter(const Node& node) {
    const Node* test = node.is("Where") && node.input(0) ? node.inputs[0]->producer : nullptr;
    if (!test || !test->is("IsNaN") || !node.input(1) || test->input(0) != node.input(2) || !is_product(*test->inputs[0]))
      return;
    const auto number = facts().uniform(*node.inputs[1]);
    const MaybeShape own = facts().shape(*test->inputs[0]), made = facts().shape(*node.outputs[0]);
    if (number && std::isfinite(*number) && own && made && *own == *made)
      guards_.emplace(test->inputs[0], Guard{node.outputs[0], *number});
  }

  /// What input number INPUT of NODE may read instead; null if there is nothing.
  Value* read_instead(const Node& node, size_t input) {
    const auto guard = node.input(static_cast<int>(input)) ? guards_.find(node.inputs[input]) : guards_.end();
    if (guard == guards_.end() || guard->second.made->graph != node.graph) return nullptr;
    if (node.is("IsInf")) return guard->second.made;
    if (!(node.is("Less") || node.is("Greater")) || !node.input(static_cast<int>(1 - input))) return nullptr;
    const bool asks_less = node.is("Less") == (input == 0);
    const double other = facts().uniform(*node.inputs[1 - input]).value_or(NAN);
    const bool is_false = asks_less ? guard->second.number >= other : guard->second.number <= other;
    return is_false ? guard->second.made : nullptr;
  }

 private:
  Facts& facts() {
    if (!facts_) facts_.emplace(view_, tensors_, false);
    return *facts_;
  }

  ModelGraph& view_;
  const TensorStore& tensors_;
  std::optional<Facts> facts_;  ///< most models have no guard
  std::map<const Value*, Guard> guards_;
};

}  // namespace

void read_guarded(ModelGraph& view, const TensorStore& tensors, Redirections& redirections) {
  Guards guards(view, tensors);
  for (const auto& graph : view.graphs())
    for (Node* node : graph->nodes()) {
      guards.enter(*node);
      for (size_t input = 0; input < node->inputs.size(); ++input)
        if (Value* guarded = guards.read_instead(*node, input))
          redirections.set_input(view, *node, static_cast<int>(input), *guarded);
    }
}

}  // namespace attn_opt
