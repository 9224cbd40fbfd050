#include "src/cli/cases/rule_part.h"

#include <algorithm>
#include <unordered_set>

#include "attn_opt/canonical.h"

namespace attn_opt {
namespace {

constexpr size_t kFarthestOfRule = 64;  // nodes that are looked at in one direction
constexpr size_t kMostNodesOfRule = 200;
constexpr int kDeepestWeight = 8;  // nodes between an initializer and the product that takes it as a weight

using NodeSet = std::unordered_set<const Node*>;

bool is_fixed_within(const Value& value, Facts& facts, int levels) {
  if (value.initializer || facts.constant(value)) return true;
  // Bodies read more than the inputs of their node.
  if (!value.producer || levels == 0 || !value.producer->bodies.empty()) return false;
  return std::ranges::all_of(value.producer->inputs,
                             [&](const Value* input) { return !input || is_fixed_within(*input, facts, levels - 1); });
}

/// Neither operand is a weight.
bool is_product_of_two(const Node& node, Facts& facts) {
  return is_matrix_product(node) && node.input(0) && node.input(1) && !is_fixed(*node.input(0), facts) &&
         !is_fixed(*node.input(1), facts);
}

bool is_whole_attention(const Node& node) { return node.op().find("Attention") != std::string::npos; }

/// What makes INPUT, through nodes that change nothing; null: nothing in GRAPH that a rule can spell.
const Node* maker(Value* input, const Graph& graph, Facts& facts) {
  if (!input) return nullptr;
  const Node* node = canonical(*input, facts).producer;
  return node && node->graph == &graph && node->bodies.empty() ? node : nullptr;
}

/// The nearest product below ANCHOR.
const Node* product_below(const Node& anchor, Facts& facts) {
  std::vector<const Node*> seen{&anchor};
  for (size_t i = 0; i < seen.size() && seen.size() < kFarthestOfRule; ++i) {
    for (const Value* output : seen[i]->outputs) {
      if (!output) continue;
      for (const Use& use : output->uses) {
        if (!use.node || use.node->graph != anchor.graph || std::ranges::find(seen, use.node) != seen.end()) continue;
        if (is_product_of_two(*use.node, facts)) return use.node;
        if (!is_matrix_product(*use.node) && use.node->bodies.empty()) seen.push_back(use.node);
      }
    }
  }
  return nullptr;
}

struct Above {
  NodeSet nodes;  ///< ANCHOR and what it is made of, below linear layers
  const Node* product = nullptr;
};

/// What stands above ANCHOR, up to the nearest product of two.
Above above(const Node& anchor, Facts& facts) {
  std::vector<const Node*> seen{&anchor};
  for (size_t i = 0; i < seen.size() && seen.size() < kFarthestOfRule; ++i) {
    for (Value* input : seen[i]->inputs) {
      const Node* node = input && !is_fixed(*input, facts) ? maker(input, *anchor.graph, facts) : nullptr;
      if (!node || std::ranges::find(seen, node) != seen.end()) continue;
      if (is_product_of_two(*node, facts)) return {{}, node};
      if (!is_matrix_product(*node)) seen.push_back(node);
    }
  }
  return {{seen.begin(), seen.end()}, nullptr};
}

/// START, what is made of it and LAST is made of, in the order of the graph.
std::vector<const Node*> between(NodeSet start, const Node& last, Facts& facts) {
  std::vector<const Node*> found;
  for (const Node* node : last.graph->nodes()) {
    if (node->removed || node->position > last.position) continue;
    const bool is_made_of_it =
        std::ranges::any_of(node->inputs, [&](Value* input) { return start.contains(maker(input, *last.graph, facts)); });
    if (is_made_of_it && node->bodies.empty()) start.insert(node);
    if (start.contains(node)) found.push_back(node);
  }
  NodeSet needed{&last};
  for (auto node = found.rbegin(); node != found.rend(); ++node)
    if (needed.contains(*node))
      for (Value* input : (*node)->inputs) needed.insert(maker(input, *last.graph, facts));
  std::erase_if(found, [&needed](const Node* node) { return !needed.contains(node); });
  return found;
}

}  // namespace

bool is_matrix_product(const Node& node) {
  return std::ranges::any_of(std::vector<std::string_view>{"MatMul", "Gemm", "Einsum"},
                             [&node](std::string_view word) { return node.op().find(word) != std::string::npos; });
}

bool is_fixed(const Value& value, Facts& facts) { return is_fixed_within(value, facts, kDeepestWeight); }

Expected<RulePart> rule_part(const Node& anchor, Facts& facts) {
  RulePart part{{}, &anchor, nullptr, &anchor};
  if (is_whole_attention(anchor)) {
    part.nodes = {&anchor};
    return part;
  }
  const Node* below = is_product_of_two(anchor, facts) ? nullptr : product_below(anchor, facts);
  if (below) part.last = below;
  Above up = above(anchor, facts);
  part.product = up.product;
  part.nodes = between(up.product ? NodeSet{up.product} : std::move(up.nodes), *part.last, facts);
  if (std::ranges::find(part.nodes, &anchor) == part.nodes.end())
    return fail(ErrorCode::kUnsupported, anchor.label(), "it stands between no two products that a rule could spell");
  if (part.nodes.size() > kMostNodesOfRule)
    return fail(ErrorCode::kUnsupported, anchor.label(),
                "a rule for it would have " + std::to_string(part.nodes.size()) + " nodes",
                std::to_string(kMostNodesOfRule) + " at most");
  return part;
}

}  // namespace attn_opt
