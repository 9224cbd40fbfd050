#include "src/rewrite/equal_nodes.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "attn_opt/operator_traits.h"
#include "src/match/alike.h"

namespace attn_opt {
namespace {

/// Nodes above, and as many below, that are near: fewer than lie between one layer's attention and the next one's.
constexpr size_t kReach = 24;
/// Readers of a value by one operator that each is compared with.
constexpr size_t kMostCompared = 8;

/// FROM and the nearest of what NEXT(node, enter) enters, and so on.
template <class Next>
std::vector<const Node*> nearest(const Node& from, Next next) {
  std::vector<const Node*> seen{&from};
  for (size_t at = 0; at < seen.size() && seen.size() <= kReach; ++at)
    next(*seen[at], [&seen](const Node* node) {
      if (node && std::ranges::find(seen, node) == seen.end()) seen.push_back(node);
    });
  return seen;
}

std::vector<const Node*> nearest_below(const Node& from) {
  return nearest(from, [](const Node& at, auto enter) {
    for (const Value* output : at.outputs)
      if (output)
        for (const Use& use : output->uses) enter(use.node);
  });
}

std::vector<const Node*> nearest_above(const Node& from) {
  return nearest(from, [](const Node& at, auto enter) {
    for (const Value* input : at.inputs)
      if (input) enter(input->producer);
  });
}

/// True if some node near ONE and OTHER hangs on both, and one near them is an exponential.
bool belong_together(const Node& one, const Node& other) {
  const std::vector<const Node*> below = nearest_below(one), below_other = nearest_below(other);
  const auto is_common = [&](const Node* node) { return std::ranges::find(below_other, node) != below_other.end(); };
  const auto is_there = [](const Node* node) { return has(*node, Trait::kExponential); };
  return std::ranges::any_of(below, is_common) &&
         (std::ranges::any_of(below, is_there) || std::ranges::any_of(nearest_above(one), is_there));
}

/// True of floating-point numbers of which there are several: these are weights, of which two are not compared.
bool is_weight(const Value& value) {
  const auto* attribute = value.producer && value.producer->is("Constant") ? value.producer->attribute("value") : nullptr;
  const onnx::TensorProto* tensor = value.initializer ? value.initializer : attribute ? &attribute->t() : nullptr;
  return tensor && is_floating(static_cast<DataType>(tensor->data_type())) &&
         std::ranges::any_of(tensor->dims(), [](int64_t size) { return size != 1; });
}

/// True if ONE and OTHER read the same, but for constants that may be equal. Asks for no facts: most that are compared differ
/// in this.
bool read_the_same(const Node& one, const Node& other) {
  if (one.inputs.size() != other.inputs.size() || one.proto->attribute_size() != other.proto->attribute_size()) return false;
  for (size_t i = 0; i < one.inputs.size(); ++i) {
    const Value *a = one.inputs[i], *b = other.inputs[i];
    const auto may_be_equal = [](const Value* value) { return value && value->is_stored() && !is_weight(*value); };
    if (a != b && !(may_be_equal(a) && may_be_equal(b))) return false;
  }
  return true;
}

/// What READER, a reader of VALUE, has in common with those that may be equal to it: its operator and what else it reads, for
/// which constants say nothing.
auto kind_of(const Node* reader, const Value& value) {
  const auto is_told = [&value](const Value* input) { return input && input != &value && !input->is_stored(); };
  const auto other = std::ranges::find_if(reader->inputs, is_told);
  return std::tuple(reader->number, other == reader->inputs.end() ? 0 : (*other)->index + 1);
}

bool stands_above(const Node* one, const Node* other) {
  return std::tuple(one->position, one->id) < std::tuple(other->position, other->id);
}

class EqualNodes {
 public:
  EqualNodes(ModelGraph& view, const TensorStore& tensors, InlinedCalls* calls, Redirections& redirections)
      : view_(view), facts_(view, tensors, false), calls_(calls), redirections_(redirections) {}

  void merge_all() {
    for (const auto& graph : view_.graphs()) {
      for (Value* input : graph->inputs()) merge_readers(*input);
      // What is made one has more readers: it is looked at behind what it reads.
      for (const Node* node : graph->nodes()) {
        for (Value* output : node->outputs)
          if (output && !node->removed) merge_readers(*output);
      }
    }
  }

 private:
  void merge_readers(Value& value);
  /// Makes OTHER, behind ONE, the same node if it is one.
  void merge(Node& one, Node& other);
  bool are_equal(const Node& one, const Node& other);

  ModelGraph& view_;
  Facts facts_;
  InlinedCalls* calls_;
  Redirections& redirections_;
};

void EqualNodes::merge_readers(Value& value) {
  if (value.uses.size() < 2) return;
  std::vector<Node*> readers;
  for (const Use& use : value.uses)
    if (use.node && use.node->number != 0 && use.node->graph == value.graph) readers.push_back(use.node);
  std::ranges::sort(readers, {},
                    [&value](const Node* node) { return std::tuple(kind_of(node, value), node->position, node->id); });
  readers.erase(std::unique(readers.begin(), readers.end()), readers.end());  // NOLINT(modernize-use-ranges)
  for (size_t first = 0; first < readers.size(); ++first) {
    for (size_t i = first + 1; i < std::min(readers.size(), first + 1 + kMostCompared); ++i) {
      if (kind_of(readers[i], value) != kind_of(readers[first], value)) break;
      if (readers[first]->removed || readers[i]->removed) continue;
      // They were sorted by what they read before some of that was made one: they may stand in any order.
      const auto [one, other] = std::minmax(readers[first], readers[i], stands_above);
      merge(*one, *other);
    }
  }
}

bool EqualNodes::are_equal(const Node& one, const Node& other) {
  if (one.outputs.size() != other.outputs.size() || !one.bodies.empty() || !other.bodies.empty()) return false;
  for (size_t i = 0; i < one.outputs.size(); ++i) {
    if (!one.outputs[i] || !other.outputs[i]) return false;
    const DataType type = facts_.type(*one.outputs[i]);
    int left = kMaxAlike;
    if (!is_floating(type) && type != onnx::TensorProto::BOOL) return false;
    if (!are_alike(*one.outputs[i], *other.outputs[i], left, facts_)) return false;
  }
  return true;
}

void EqualNodes::merge(Node& one, Node& other) {
  if (!read_the_same(one, other) || !belong_together(one, other) || !are_equal(one, other)) return;
  const auto is_fixed = [](const Value* value) {
    return value->is_output || std::ranges::any_of(value->uses, [](const Use& use) { return !use.node; });
  };
  if (std::ranges::any_of(other.outputs, is_fixed)) return;
  for (size_t i = 0; i < one.outputs.size(); ++i) {
    if (calls_) calls_->read_instead(other.outputs[i]->name, one.outputs[i]->name);
    const std::vector<Use> uses(other.outputs[i]->uses.begin(), other.outputs[i]->uses.end());
    for (const Use& use : uses) redirections_.set_input(view_, *use.node, use.input, *one.outputs[i]);
  }
  view_.remove_if_dead(other);
}

}  // namespace

void merge_equal_nodes(ModelGraph& view, const TensorStore& tensors, InlinedCalls* calls, Redirections& redirections) {
  EqualNodes(view, tensors, calls, redirections).merge_all();
}

}  // namespace attn_opt
