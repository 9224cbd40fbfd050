#include "src/optimizer/rewrite_edit.h"

#include <algorithm>
#include <unordered_set>

namespace attn_opt {
namespace {

/// Why EXISTING cannot be made by another node; empty if it can.
std::string fault_of(const Replacement& replacement, const Edit& edit) {
  const auto& [existing, made] = replacement;
  if (!existing || !made) return "apply() gave no value";
  const std::string name = "'" + existing->name + "'";
  if (existing->graph != &edit.graph()) return name + " is of another graph than the new nodes";
  if (!existing->producer || existing->removed) return name + " is made by no node of the model";
  if (existing == made) return name + " is to be replaced by itself";
  return {};
}

/// A value of EDIT's own nodes, that no takeover has yet, which is what MADE is.
Value& own_value(Value& made, const Edit& edit, GraphBuilder& build) {
  const auto& nodes = edit.nodes();
  const auto& takeovers = edit.takeovers();
  const bool is_own = std::ranges::find(nodes, made.producer) != nodes.end();
  const bool is_taken = std::ranges::find(takeovers, &made, &Edit::Takeover::made) != takeovers.end();
  if (is_own && !is_taken) return made;
  return *build.new_node("Identity", {&made}, {true}, {})->outputs[0];
}

/// What the new nodes read and is not there yet where they are to go; null if all is.
const Value* read_too_early(const Edit& edit) {
  const std::unordered_set<const Node*> own(edit.nodes().begin(), edit.nodes().end());
  for (const Node* node : edit.nodes())
    for (const Value* read : node->inputs) {
      if (!read || own.contains(read->producer)) continue;
      if (read->removed || !edit.graph().sees(*read)) return read;
      const Node* maker = read->producer;
      if (!maker || maker->graph != &edit.graph()) continue;
      if (maker == &edit.anchor() || maker->position > edit.anchor().position) return read;
    }
  return nullptr;
}

}  // namespace

Matched<std::vector<Node*>> fill_edit(const Rewrite& rewrite, const RewriteMatch& match, const Node& node,
                                      const SharedNodes& shared, Edit& edit) {
  if (edit.anchor().removed)
    return missed("rewrite.place", &node, "the node before which the new ones are to go is not there any more");
  GraphBuilder build(edit, shared, node.label());
  ATTN_OPT_MATCH(const std::vector<Replacement> replacements, rewrite.apply(match, build));
  if (replacements.empty()) return missed("rewrite.place", &node, "apply() replaces nothing");
  for (const Replacement& replacement : replacements) {
    if (const std::string fault = fault_of(replacement, edit); !fault.empty()) return missed("rewrite.place", &node, fault);
    edit.take_over(*replacement.existing, own_value(*replacement.made, edit, build));
  }
  if (const Value* early = read_too_early(edit))
    return missed(std::string(kRewriteOrder), early->producer, "'" + early->name + "' is made behind the new nodes");
  std::vector<Node*> removed = edit.would_remove();
  const Node* reader = nullptr;
  if (!edit.keeps_order(removed, &reader))
    return missed(std::string(kRewriteOrder), reader, "'" + reader->label() + "' reads what would be made behind it");
  return removed;
}

}  // namespace attn_opt
