#include "src/optimizer/site_graphs.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "src/optimizer/graph_part.h"

namespace attn_opt {
namespace {

using NodeRole = SiteGraph::Node::Role;

constexpr size_t kAbove = 24;  ///< nodes above the anchor that are drawn of a miss
constexpr size_t kBelow = 3;   ///< and that read what it makes

void enter_operand(const Operand& operand, const std::string& name, const std::string& cache, TensorRoles& roles) {
  for (const OperandView& view : operand.views) {
    if (view.past) roles.emplace(view.past, "past_" + cache);
    if (view.present) roles.emplace(view.present, "present_" + cache);
  }
  for (const OperandView& view : operand.views) roles.emplace(view.value, name);
}

/// What values are to SDPA.
TensorRoles roles_of(const Sdpa& sdpa) {
  TensorRoles roles;
  enter_operand(sdpa.q, "Q", "query", roles);
  enter_operand(sdpa.k, "K", "key", roles);
  enter_operand(sdpa.v, "V", "value", roles);
  for (const ScoreTerm& term : sdpa.terms) roles.emplace(term.value, term.kind == ScoreTerm::Kind::kBias ? "bias" : "mask");
  for (const TensorScale& scale : sdpa.tensor_scales) roles.emplace(scale.value, "scale");
  for (const OutputView& view : sdpa.outputs) roles.emplace(view.value, "output");
  if (sdpa.probabilities) roles.emplace(sdpa.probabilities->value, "probabilities");
  if (sdpa.scores_output) roles.emplace(sdpa.scores_output->value, "scores");
  return roles;
}

/// The inputs and outputs of an Attention node.
TensorRoles roles_of_node(const Emission& emission) {
  constexpr std::array kInputs = {"Q", "K", "V", "mask", "past_key", "past_value", "lengths"};
  constexpr std::array kOutputs = {"output", "present_key", "present_value", "scores"};
  TensorRoles roles;
  const std::vector<Value*> given = emission.given();
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i]) roles.emplace(given[i], kInputs[i]);
  for (size_t i = 0; i < kOutputs.size(); ++i)
    if (const Value* value = emission.attention->output(i)) roles.emplace(value, kOutputs[i]);
  return roles;
}

/// What the nodes of EDIT, and those of earlier edits that it makes use of, read of the file.
std::set<const Value*> reads_of_file(const Edit& edit) {
  std::set<const Value*> read;
  std::vector<const Node*> pending(edit.nodes().begin(), edit.nodes().end());
  std::set<const Node*> seen;
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    if (!seen.insert(node).second) continue;
    for (const Value* value : node->inputs) {
      if (!value) continue;
      if (value->is_new && value->producer)
        pending.push_back(value->producer);
      else
        read.insert(value);
    }
  }
  return read;
}

}  // namespace

SiteGraph SiteGraphs::before(const Emission& emission, const Sdpa& sdpa) {
  const std::set<const Value*> leaves = reads_of_file(emission.edit);
  const TensorRoles roles = roles_of(sdpa);
  GraphPart part(facts_);
  std::vector<const Value*> ends;
  for (const Edit::Takeover& takeover : emission.edit.takeovers()) ends.push_back(takeover.existing);
  part.add_above(ends, [&leaves](const Value& value) { return leaves.contains(&value); }, SiteGraph::kMostNodes);
  return part.graph([](const Node&) { return NodeRole::kPlain; }, roles, ends);
}

SiteGraph SiteGraphs::after(const Emission& emission, const Sdpa& sdpa) {
  TensorRoles roles = roles_of(sdpa);
  const TensorRoles inner = emission.attention ? roles_of_node(emission) : TensorRoles();
  GraphPart part(facts_);
  std::vector<const Value*> ends;
  for (const Edit::Takeover& takeover : emission.edit.takeovers()) {
    ends.push_back(takeover.made);
    part.call(*takeover.made, *takeover.existing);
    if (const auto role = roles.find(takeover.existing); role != roles.end()) roles[takeover.made] = role->second;
  }
  part.add_above(ends, [](const Value& value) { return !value.is_new; }, SiteGraph::kMostNodes);
  return part.graph([](const Node&) { return NodeRole::kWritten; }, roles, ends, inner);
}

SiteGraph SiteGraphs::around(const Node& anchor, const Node* stopped) {
  GraphPart part(facts_);
  std::vector<const Value*> ends;
  for (const Value* value : anchor.outputs)
    if (value) ends.push_back(value);
  part.add_above(ends, [](const Value&) { return false; }, kAbove);
  std::set<const Node*> walked;
  if (stopped && stopped != &anchor) {
    for (const Node* node : way_between(anchor, *stopped, facts_)) walked.insert(node);
    for (const Node* node : walked) part.add(*node);
  }
  if (stopped) part.add(*stopped);
  for (const Value* end : ends)
    for (size_t i = 0; i < std::min(kBelow, end->uses.size()); ++i)
      if (const Node* reader = end->uses[i].node; reader && reader->graph == anchor.graph) part.add(*reader);
  const auto role = [&](const Node& node) {
    if (&node == stopped) return NodeRole::kStopped;
    if (&node == &anchor) return NodeRole::kAnchor;
    return walked.contains(&node) ? NodeRole::kWalked : NodeRole::kPlain;
  };
  return part.graph(role, {}, {});
}

}  // namespace attn_opt
