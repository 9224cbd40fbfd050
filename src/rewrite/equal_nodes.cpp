#include "src/rewrite/equal_nodes.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "attn_opt/executor.h"
#include "attn_opt/operator_traits.h"

namespace attn_opt {
namespace {

/// Attributes of more bytes are not compared: a constant is no score.
constexpr size_t kMostAttributeBytes = 1024;
/// Readers of a value that may read the same: more, as of a mask for all layers, are not told apart.
constexpr size_t kMostReaders = 32;
/// Nodes looked at around one.
constexpr size_t kMostNodes = 256;

/// True for what stands between two products of attention.
bool acts_on_scores(const Node& node) {
  static constexpr std::array kTraits = {Trait::kElementwise, Trait::kKeepsAll, Trait::kMoves, Trait::kReduces,
                                         Trait::kSelects};
  return node.is("Softmax") || node.is("LogSoftmax") || node.is("Concat") || node.is("Split") ||
         std::ranges::any_of(kTraits, [&](Trait trait) { return has(node, trait); });
}

/// True for a product of two values that the model computes.
bool multiplies_computed(const Node& node) {
  const bool is_product = node.is("MatMul") || node.is("Einsum") || node.is("Gemm") || node.op() == "FusedMatMul";
  return is_product && std::ranges::count_if(node.inputs, [](const Value* input) {
                         return input && !input->initializer && !(input->producer && input->producer->is("Constant"));
                       }) > 1;
}

/// The nodes on ways from products to ANCHOR and from these to others, with all of these products.
std::unordered_set<const Node*> beside(const Node& anchor) {
  std::unordered_set<const Node*> found{&anchor};
  std::vector<const Node*> pending{&anchor};
  const auto add = [&](const Node* node) {
    const bool is_near = node && node->graph == anchor.graph && (acts_on_scores(*node) || multiplies_computed(*node));
    if (is_near && found.size() < kMostNodes && found.insert(node).second) pending.push_back(node);
  };
  for (size_t i = 0; i < pending.size(); ++i) {
    const Node& node = *pending[i];
    if (!multiplies_computed(node) || &node == &anchor)
      for (const Value* input : node.inputs)
        if (input) add(input->producer);
    for (const Value* made : node.outputs)
      if (made)
        for (const Use& use : made->uses) add(use.node);
  }
  return found;
}

bool have_same_attributes(const Node& one, const Node& other) {
  return std::ranges::equal(one.proto->attribute(), other.proto->attribute(), [](const auto& a, const auto& b) {
    return a.ByteSizeLong() <= kMostAttributeBytes && a.SerializeAsString() == b.SerializeAsString();
  });
}

/// Numbers the values of a graph: those that equal nodes make have the number of the first.
class Numbering {
 public:
  explicit Numbering(const Graph& graph) : graph_(graph), first_(graph.value_count(), nullptr) {}

  /// The first node that NODE is equal to, to be asked of each node in order; null if that is itself, or it cannot be told.
  const Node* first_of(const Node& node) {
    const Node* first = node.bodies.empty() ? equal_reader(node) : nullptr;
    if (first && is_random(*node.proto)) return nullptr;
    for (size_t i = 0; first && i < node.outputs.size(); ++i)
      if (node.outputs[i] && first->output(i)) first_[node.outputs[i]->index] = first->outputs[i];
    return first;
  }

 private:
  const Value* number(const Value* value) const {
    const bool is_own = value && value->graph == &graph_ && value->index < first_.size();
    return is_own && first_[value->index] ? first_[value->index] : value;
  }

  /// The first reader of what NODE reads that is equal to it.
  const Node* equal_reader(const Node& node) const {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Value* read = node.inputs[i];
      if (!read || read->initializer || (read->producer && read->producer->is("Constant"))) continue;
      const Value& value = *number(read);
      if (value.uses.size() > kMostReaders) continue;
      const Node* first = nullptr;
      for (const Use& use : value.uses)
        if (use.node && use.node != &node && use.input == static_cast<int>(i) && is_before(*use.node, first ? *first : node) &&
            is_equal(*use.node, node))
          first = use.node;
      return first;
    }
    return nullptr;
  }

  static bool is_before(const Node& one, const Node& other) {
    return one.graph == other.graph && one.position < other.position;
  }

  bool is_equal(const Node& one, const Node& other) const {
    return one.number == other.number && one.op() == other.op() && one.domain() == other.domain() &&
           one.outputs.size() == other.outputs.size() && have_same_attributes(one, other) &&
           std::ranges::equal(one.inputs, other.inputs,
                              [this](const Value* a, const Value* b) { return number(a) == number(b) || are_constants(a, b); });
  }

  /// True of two constants that are equal.
  static bool are_constants(const Value* one, const Value* other) {
    const auto is_constant = [](const Value* value) { return value && value->producer && value->producer->is("Constant"); };
    return is_constant(one) && is_constant(other) && have_same_attributes(*one->producer, *other->producer);
  }

  const Graph& graph_;
  std::vector<const Value*> first_;  ///< by index; null: itself
};

/// True if all that read what ONE makes can read what OTHER makes.
bool can_stand_for(const Node& other, const Node& one) {
  for (size_t i = 0; i < one.outputs.size(); ++i) {
    const Value* made = one.outputs[i];
    if (made && (made->is_output || !other.output(i))) return false;
  }
  return true;
}

}  // namespace

bool EqualNodes::merge(const std::vector<const Node*>& anchors) {
  std::unordered_set<const Node*> near;
  for (const Node* anchor : anchors)
    if (!near.contains(anchor)) near.merge(beside(*anchor));
  struct Copy {
    Node* node = nullptr;
    const Node* first = nullptr;
  };
  std::vector<Copy> copies;
  Numbering numbering(view_.main());
  for (Node* node : view_.main().nodes()) {
    const Node* first = node->removed ? nullptr : numbering.first_of(*node);
    const bool is_near = near.contains(node) || near.contains(first);
    if (first && is_near && can_stand_for(*first, *node)) copies.push_back({node, first});
  }
  for (const Copy& copy : copies)
    for (size_t i = 0; i < copy.node->outputs.size(); ++i)
      if (copy.node->outputs[i]) move_readers(*copy.node->outputs[i], *copy.first->outputs[i]);
  for (const Copy& copy : copies) {
    view_.remove_if_dead(*copy.node);
    copies_.push_back(copy.node);
  }
  return !copies.empty();
}

void EqualNodes::move_readers(Value& from, Value& to) {
  firsts_[from.name] = to.name;
  const std::vector<Use> uses(from.uses.begin(), from.uses.end());
  for (const Use& use : uses) {
    if (!use.node) continue;
    moved_.push_back({use.node->proto, use.input, from.name});
    view_.set_input(*use.node, use.input, to);
  }
}

void EqualNodes::undo() const {
  for (const Read& read : moved_) read.reader->set_input(read.input, read.name);
}

}  // namespace attn_opt
