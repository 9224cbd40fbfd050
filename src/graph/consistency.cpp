// ModelGraph::check(): what each edit must leave true.
#include <algorithm>
#include <unordered_map>

#include "attn_opt/graph.h"
#include "src/graph/operator_number.h"

namespace attn_opt {
namespace {

tl::unexpected<Error> wrong(const Node& node, const std::string& what) {
  return fail(ErrorCode::kInvalidInput, "node '" + node.label() + "' (" + node.op() + ")", what);
}

std::string quoted(const Value& value) { return "'" + value.name + "'"; }

/// Walks a graph's nodes in their order and counts what has been made and read.
class ConsistencyCheck {
 public:
  /// GRAPH, whose nodes NODES_OF gives in their order, and the bodies in it.
  template <class NodesOf>
  Status check_graph(const Graph& graph, const NodesOf& nodes_of) {
    for (const Value* input : graph.inputs()) reads_.try_emplace(input, 0);
    for (const Node* node : nodes_of(graph)) {
      if (node->removed) continue;
      ATTN_OPT_CHECK(check_reads(*node));
      for (const Graph* body : node->bodies) ATTN_OPT_CHECK(check_graph(*body, nodes_of));
      ATTN_OPT_CHECK(check_outputs(*node));
    }
    for (const Value* output : graph.outputs()) {
      if (!is_there(*output)) return fail(ErrorCode::kInvalidInput, quoted(*output), "is an output and nothing above makes it");
      reads_[output] += output->graph != &graph;
    }
    return {};
  }

  /// That the use list of every value that was read or made has its reads, and no others.
  Status check_uses() const {
    for (const auto& [value, reads] : reads_)
      if (value->uses.size() != reads)
        return fail(ErrorCode::kInvalidInput, quoted(*value),
                    "has " + std::to_string(value->uses.size()) + " uses and " + std::to_string(reads) + " readers");
    return {};
  }

 private:
  Status check_reads(const Node& node) {
    if (node.number != operator_number(node)) return wrong(node, "has the number of another operator");
    const bool names_agree = static_cast<int>(node.inputs.size()) == node.proto->input_size() &&
                             static_cast<int>(node.outputs.size()) == node.proto->output_size();
    if (!names_agree) return wrong(node, "has other inputs or outputs than its proto");
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Value* value = node.inputs[i];
      if (node.proto->input(static_cast<int>(i)) != (value ? value->name : ""))
        return wrong(node, "input " + std::to_string(i) + " has another name in its proto");
      if (!value) continue;
      if (!is_there(*value) || !node.graph->sees(*value))
        return wrong(node, quoted(*value) + " is read and nothing above makes it");
      const uint32_t slot = node.use_slots[i];
      if (slot >= value->uses.size() || value->uses[slot].node != &node || value->uses[slot].input != static_cast<int>(i))
        return wrong(node, "is not among the uses of " + quoted(*value));
      ++reads_[value];
    }
    return {};
  }

  Status check_outputs(const Node& node) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const Value* value = node.outputs[i];
      if (node.proto->output(static_cast<int>(i)) != (value ? value->name : ""))
        return wrong(node, "output " + std::to_string(i) + " has another name in its proto");
      if (!value) continue;
      if (value->removed) return wrong(node, quoted(*value) + " is made and counts as removed");
      if (value->producer != &node || value->output != static_cast<int>(i))
        return wrong(node, quoted(*value) + " takes another node for its producer");
      if (node.graph->find(value->name) != value) return wrong(node, quoted(*value) + " is not found by its name");
      if (!made_.try_emplace(value, true).second) return wrong(node, quoted(*value) + " is made twice");
      reads_.try_emplace(value, 0);
    }
    return {};
  }

  bool is_there(const Value& value) const { return !value.removed && (!value.producer || made_.count(&value)); }

  std::unordered_map<const Value*, bool> made_;
  std::unordered_map<const Value*, size_t> reads_;
};

}  // namespace

std::vector<Node*> ModelGraph::in_order(const Graph& graph) {
  std::vector<Node*> added = graph.added_, order;
  const auto stands_before = [](const Node* a, const Node* b) { return a->position < b->position; };
  std::ranges::stable_sort(added, stands_before);
  std::ranges::merge(added, graph.nodes_, std::back_inserter(order), stands_before);
  return order;
}

Status ModelGraph::check() const {
  ConsistencyCheck check;
  for (const auto& graph : graphs_) {
    if (graph->parent()) continue;
    ATTN_OPT_CHECK(check.check_graph(*graph, in_order));
  }
  return check.check_uses();
}

}  // namespace attn_opt
