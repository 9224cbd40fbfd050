#include "src/emit/read_sizes.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

#include "attn_opt/operator_traits.h"
#include "src/emit/equal_sizes.h"
#include "src/emit/sizes.h"
#include "src/graph/sorted_nodes.h"
#include "src/match/sizes/sole_atom.h"

namespace attn_opt {
namespace {

/// Nodes looked at above one site.
constexpr size_t kMaxNodes = 64;
/// More readers than this are no few sizes: a mask that all layers share.
constexpr size_t kMaxReaders = 16;

bool reads_sizes(const Use& use) { return use.node && use.node->is("Shape"); }

bool is_read_for_sizes(const Node& node) {
  return std::ranges::any_of(node.outputs, [](const Value* made) {
    return made && made->uses.size() <= kMaxReaders && std::ranges::any_of(made->uses, reads_sizes);
  });
}

/// The Shapes of the file that read what NODE makes; empty if there are none or others read it too.
std::vector<Node*> only_shapes(const Node& node) {
  std::vector<Node*> shapes;
  for (const Value* made : node.outputs) {
    if (!made) continue;
    if (made->is_output || made->uses.size() > kMaxReaders) return {};
    for (const Use& use : made->uses) {
      if (!reads_sizes(use) || use.node->placement != Placement::kOfFile) return {};
      shapes.push_back(use.node);
    }
  }
  return shapes;
}

/// Enters in FOUND the nodes of the file, but for those that are GONE, that change what NODE makes element by element, or move
/// its elements, and are read for the sizes of that alone.
void add_changed_for_sizes(const Node& node, const SortedNodes& gone, std::vector<Node*>& found) {
  for (const Value* made : node.outputs) {
    if (!made || made->uses.size() > kMaxReaders) continue;
    for (const Use& use : made->uses)
      if (use.node && !gone.contains(use.node) && use.node->placement == Placement::kOfFile &&
          (has(*use.node, Trait::kElementwise) || has(*use.node, Trait::kKeepsAll)) && !only_shapes(*use.node).empty())
        found.push_back(use.node);
  }
}

/// Lets what reads MADE read SAME instead. Inference follows sizes through no Identity.
void replace(Value& made, Value& same, ModelGraph& model) {
  const std::vector<Use> uses(made.uses.begin(), made.uses.end());
  for (const Use& use : uses) model.set_input(*use.node, use.input, same);
  model.remove_if_dead(*made.producer);
}

/// What SHAPE makes in every run; null if that is not known.
const IntegerData* numbers_of_each_run(const Node& shape, Facts& facts) {
  const IntegerData* numbers = facts.integers(*shape.outputs[0]);
  if (!numbers || numbers->values.empty()) return nullptr;
  Value* const of_known_size[] = {shape.outputs[0]};  // nothing is known of its graph's sizes by it: any may be 0
  const auto may_be_other = [&](const Dim& size) { return is_one_of_equals(size, *shape.inputs[0], of_known_size, facts); };
  const bool may_be_others = std::ranges::any_of(numbers->values, may_be_other);
  return may_be_others ? facts.integers_of_each_run(*shape.outputs[0]) : numbers;
}

/// VALUES, and those that SIZES of unknown name are sizes of.
std::vector<Value*> with_named(std::vector<Value*> values, const std::vector<Dim>& sizes, const Graph& graph) {
  for (const Dim& size : sizes)
    for (const AtomRef& atom : size.atoms()) {
      const std::string_view name = named_by(*atom);
      if (Value* named = name.empty() ? nullptr : graph.find(name)) values.push_back(named);
    }
  return values;
}

/// What SHAPE makes, of graph inputs and of those values AT_HAND that stand above it; null if they do not say it for every run.
Value* said_by(const std::vector<Value*>& at_hand, const Node& shape, GraphBuilder& build, Facts& facts) {
  const IntegerData* numbers = facts.integers_of_each_run(*shape.outputs[0]);
  if (!numbers) return nullptr;
  const std::vector<Dim> sizes = numbers->values;  // until more is asked
  SizeSource source(build, facts);
  for (Value* value : with_named(at_hand, sizes, *shape.graph)) {
    if (value->graph != shape.graph || (value->producer && value->producer->position >= shape.position)) continue;
    if (const MaybeShape known = facts.shape_of_each_run(*value)) source.add(*value, *known);
  }
  return source.sizes(sizes);
}

/// Makes what SHAPE makes of graph inputs, or of values AT_HAND; false if those do not say it for every run.
bool say(Node& shape, const std::vector<Value*>& at_hand, MatchContext& context, SharedNodes& shared) {
  const IntegerData* numbers = numbers_of_each_run(shape, context.facts);
  if (!numbers) return false;
  Edit edit(context.view, shape);
  GraphBuilder build(edit, shared, shape.label());
  Value* said = SizeSource(build, context.facts).sizes(numbers->values);
  if (!said) said = said_by(at_hand, shape, build, context.facts);
  if (!said) return false;
  Value& made = *shape.outputs[0];
  // Takeovers need a node of the edit's own.
  const bool is_own = std::ranges::find(edit.nodes(), said->producer) != edit.nodes().end();
  const bool is_replaceable = !is_own && edit.nodes().empty() && !made.is_output && std::ranges::all_of(made.uses, &Use::node);
  if (is_replaceable) {
    replace(made, *said, context.view);
    return true;
  }
  if (!is_own) said = build.new_node("Identity", {said}, {true}, {})->outputs[0];
  edit.take_over(made, *said);
  edit.commit(shared);
  return true;
}

/// Lets the Shapes that alone read what NODE makes read what it makes that of, if it has the same sizes. ONNX Runtime's
/// optimizer leaves a model invalid where a Shape stands behind a Cast of what an output is a copy of.
void read_above(Node& node, ModelGraph& model) {
  const std::vector<Node*> shapes = only_shapes(node);
  if (shapes.empty() || node.inputs.size() != 1 || !node.inputs[0] || !has(node, Trait::kElementwise)) return;
  for (Node* shape : shapes) model.set_input(*shape, 0, *node.inputs[0]);
  model.remove_if_dead(node);
}

/// NODES and those above them in their graph, from the last upward.
std::vector<Node*> with_makers(std::vector<Node*> nodes) {
  std::unordered_set<const Node*> seen(nodes.begin(), nodes.end());
  for (size_t i = 0; i < nodes.size() && nodes.size() < kMaxNodes; ++i)
    for (const Value* input : nodes[i]->inputs)
      if (input && input->producer && input->graph == nodes[i]->graph && seen.insert(input->producer).second)
        nodes.push_back(input->producer);
  std::ranges::sort(nodes, std::greater(), &Node::position);
  return nodes;
}

}  // namespace

std::vector<Node*> nodes_read_for_sizes(const Emission& emission) {
  const SortedNodes gone(emission.removed);
  std::vector<Node*> found;
  for (const Node* node : emission.removed) {
    add_changed_for_sizes(*node, gone, found);  // of what another node makes from now on
    for (const Value* input : node->inputs) {
      Node* maker = input ? input->producer : nullptr;
      if (!maker || maker->placement != Placement::kOfFile || gone.contains(maker)) continue;
      if (is_read_for_sizes(*maker)) found.push_back(maker);
      add_changed_for_sizes(*maker, gone, found);
    }
  }
  return found;
}

std::vector<Value*> values_at_hand(const Emission& emission) {
  std::vector<Value*> found;
  for (const Node* node : emission.edit.nodes())
    for (Value* input : node->inputs) {
      const bool is_of_file = input && (!input->producer || input->producer->placement == Placement::kOfFile);
      if (is_of_file && std::ranges::find(found, input) == found.end()) found.push_back(input);
    }
  return found;
}

void say_sizes(const std::vector<Node*>& nodes, const std::vector<Value*>& at_hand, MatchContext& context,
               SharedNodes& shared) {
  for (Node* node : with_makers(nodes)) {
    if (node->removed) continue;
    for (Node* shape : only_shapes(*node))
      if (!say(*shape, at_hand, context, shared)) break;
    if (!node->removed) read_above(*node, context.view);
  }
}

}  // namespace attn_opt
