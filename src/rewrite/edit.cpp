#include "attn_opt/edit.h"

#include <algorithm>
#include <unordered_set>

#include "attn_opt/name_table.h"
#include "src/graph/sorted_nodes.h"

namespace attn_opt {
namespace {

/// What an edit does to VALUE.
struct EditedValue {
  const Value* value = nullptr;
  bool is_read = false;   ///< by a node of the edit
  bool is_taken = false;  ///< over, by a value of the edit
  size_t dropped_uses = 0;
};

class EditedValues {
 public:
  /// Another that is asked for may move it.
  EditedValue& of(const Value& value) { return values_.find_or_insert(pointer_hash(&value), {&value}, Is{value}); }

  bool leaves_unread(const Value* value) const {
    if (!value) return true;
    const EditedValue* found = values_.find(pointer_hash(value), Is{*value});
    const EditedValue edited = found ? *found : EditedValue{};
    return edited.is_taken || (!value->is_output && !edited.is_read && value->uses.size() == edited.dropped_uses);
  }

 private:
  struct Is {
    const Value& value;
    bool operator()(const EditedValue& edited) const { return edited.value == &value; }
  };

  NameTable<EditedValue> values_;
};

/// The nodes that read VALUE, those among them whose bodies have it for an output of their own.
std::vector<const Node*> readers_of(const Value& value, const ModelGraph& model) {
  std::vector<const Node*> readers;
  bool is_output_of_body = false;
  for (const Use& use : value.uses) {
    if (use.node)
      readers.push_back(use.node);
    else
      is_output_of_body = true;
  }
  if (!is_output_of_body) return readers;
  for (const auto& graph : model.graphs())
    if (graph->owner() && graph.get() != value.graph && std::ranges::find(graph->outputs(), &value) != graph->outputs().end())
      readers.push_back(graph->owner());
  return readers;
}

}  // namespace

Value* SharedNodes::find(const Node& reader, const std::string& key) const {
  const auto of_graph = made_.find(reader.graph);
  if (of_graph == made_.end()) return nullptr;
  const auto found = of_graph->second.find(key);
  if (found == of_graph->second.end()) return nullptr;
  const Value& made = *found->second;
  const Node& maker = *made.producer;
  // An edit may have given it the name of a value of the model since.
  return maker.removed || maker.position > reader.position ? nullptr : maker.outputs[made.output];
}

std::vector<Node*> Edit::would_remove() const {
  EditedValues values;
  for (const Node* node : nodes_)
    for (const Value* input : node->inputs)
      if (input) values.of(*input).is_read = true;
  for (const auto& takeover : takeovers_) values.of(*takeover.existing).is_taken = true;
  const auto unread = [&values](const Value* value) { return values.leaves_unread(value); };
  std::vector<Node*> removed, pending;
  NameTable<const Node*> seen;
  for (const auto& takeover : takeovers_)
    if (takeover.existing->producer) pending.push_back(takeover.existing->producer);
  while (!pending.empty()) {
    Node* node = pending.back();
    pending.pop_back();
    if (!std::ranges::all_of(node->outputs, unread)) continue;
    if (!seen.insert(pointer_hash(node), node, [node](const Node* known) { return known == node; })) continue;
    removed.push_back(node);
    for (Value* input : node->inputs) {
      if (!input) continue;
      ++values.of(*input).dropped_uses;
      if (input->producer && unread(input)) pending.push_back(input->producer);
    }
  }
  return removed;
}

void Edit::enter(SharedNodes& shared) const {
  auto& of_graph = shared.made_[&graph()];
  for (const auto& [key, value] : made_) {
    const auto replaced =
        std::ranges::find_if(takeovers_, [&made = value](const Takeover& takeover) { return takeover.made == made; });
    of_graph.insert_or_assign(key, replaced == takeovers_.end() ? value : replaced->existing);
  }
}

void Edit::adopt_unplaced() {
  const std::unordered_set<const Node*> own(nodes_.begin(), nodes_.end());
  std::unordered_set<const Node*> seen = own;
  std::vector<Node*> in_order;
  std::vector<std::pair<Node*, size_t>> pending;  // and the next of its inputs
  auto is_wanted = [&](const Value* value) {
    return value && value->producer && value->producer->placement == Placement::kUnplaced &&
           seen.insert(value->producer).second;
  };
  auto adopt_above = [&](Node* reader) {
    pending.emplace_back(reader, 0);
    while (!pending.empty()) {
      auto& [node, next] = pending.back();
      if (next == node->inputs.size()) {
        if (!own.count(node)) in_order.push_back(node);
        pending.pop_back();
        continue;
      }
      const Value* input = node->inputs[next++];
      if (is_wanted(input)) pending.emplace_back(input->producer, 0);
    }
  };
  for (Node* node : nodes_) adopt_above(node);
  for (const Takeover& takeover : takeovers_)
    if (is_wanted(takeover.made)) adopt_above(takeover.made->producer);
  nodes_.insert(nodes_.begin(), in_order.begin(), in_order.end());
}

bool Edit::keeps_order(const std::vector<Node*>& removed, const Node** first_reader) const {
  const SortedNodes gone(removed);
  auto stands_behind_anchor = [&](const Node* node) {
    const Node* reader = graph().holder_of(*node);
    // Others at the anchor's position were put before it by earlier edits: they stand above this one, one that is the anchor
    // too.
    const bool is_anchor = reader == &anchor_ && anchor_.placement == Placement::kOfFile;
    return !reader || gone.contains(reader) || is_anchor || reader->position > anchor_.position;
  };
  for (const auto& takeover : takeovers_)
    for (const Node* reader : readers_of(*takeover.existing, model_))
      if (!gone.contains(reader) && !stands_behind_anchor(reader)) {
        if (first_reader) *first_reader = reader;
        return false;
      }
  return true;
}

void Edit::commit(SharedNodes& shared) {
  for (Node* node : raised_) model_.raise(*node, anchor_);
  for (Node* node : nodes_) {
    model_.link(*node, anchor_);
    if (!node->domain().empty()) import_domain(node->proto->domain(), model_.proto());
  }
  for (auto& [value, type] : declared_) model_.declare(*value, std::move(type));
  for (const auto& function : functions_) enter_function(function, model_.proto());
  std::vector<Node*> old_producers;
  for (const auto& takeover : takeovers_) {
    if (takeover.existing->producer) old_producers.push_back(takeover.existing->producer);
    Node& maker = *takeover.made->producer;
    const std::vector<Use> uses(takeover.made->uses.begin(), takeover.made->uses.end());
    model_.take_over(*takeover.existing, maker, takeover.made->output);
    for (const Use& use : uses) model_.set_input(*use.node, use.input, *takeover.existing);
  }
  enter(shared);
  for (Node* node : old_producers) model_.remove_if_dead(*node);
}

void enter_function(const onnx::FunctionProto& function, onnx::ModelProto& model) {
  constexpr int64_t kFirstIrVersionWithFunctions = 8;
  model.set_ir_version(std::max(model.ir_version(), kFirstIrVersionWithFunctions));
  const auto is_same = [&](const auto& other) {
    return other.domain() == function.domain() && other.name() == function.name() && other.overload() == function.overload();
  };
  if (std::none_of(model.functions().begin(), model.functions().end(), is_same)) *model.add_functions() = function;
  import_domain(function.domain(), model);
}

void import_domain(const std::string& domain, onnx::ModelProto& model) {
  for (const auto& import : model.opset_import())
    if (import.domain() == domain) return;
  auto* import = model.add_opset_import();
  import->set_domain(domain);
  import->set_version(1);
}

}  // namespace attn_opt
