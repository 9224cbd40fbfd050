// The nodes that bring Q, K, V, masks and outputs into their layout written wrong.
#include <algorithm>

#include "tests/mutation/edit_changes.h"

namespace attn_opt {
namespace {

using P = onnx::TensorProto;

const Tensor* ints_of(const Value* value, Tensor& storage) {
  if (!value || !value->producer || !value->producer->is("Constant")) return nullptr;
  const auto* attribute = value->producer->attribute("value");
  if (!attribute) return nullptr;
  auto tensor = to_tensor(attribute->t(), inline_tensors());
  if (!tensor || tensor->type() != P::INT64) return nullptr;
  storage = *std::move(tensor);
  return &storage;
}

/// The numbers that input 1 of NODE is, if they are a constant.
std::vector<int64_t> target_of(const Node& node) {
  Tensor storage;
  const Tensor* tensor = ints_of(node.input(1), storage);
  if (!tensor) return {};
  const auto data = tensor->data<int64_t>();
  return {data.begin(), data.end()};
}

/// Input 1 of each OP is a constant: CHANGE(numbers, I) at each I for which it returns true.
EditMutation of_target(std::string step, std::string change, std::string op, bool (*apply)(std::vector<int64_t>&, size_t)) {
  return {std::move(step), std::move(change), [=](const Emission& emission, Facts&) {
            EditChanges changes;
            const auto& nodes = emission.edit.nodes();
            for (size_t i = 0; i < nodes.size(); ++i) {
              if (!nodes[i]->is(op)) continue;
              const std::vector<int64_t> numbers = target_of(*nodes[i]);
              for (size_t place = 0; place < numbers.size(); ++place) {
                std::vector<int64_t> target = numbers;
                if (!apply(target, place)) continue;
                changes.push_back(
                    [=](Emission& changed) { changed.edit.nodes()[i]->inputs[1] = builder_of(changed).ints(target); });
              }
            }
            return changes;
          }};
}

bool exchange_with_next(std::vector<int64_t>& numbers, size_t i) {
  if (i + 1 >= numbers.size() || numbers[i] == numbers[i + 1]) return false;
  std::swap(numbers[i], numbers[i + 1]);
  return true;
}
bool make_larger(std::vector<int64_t>& numbers, size_t i) {
  numbers[i] += 6;
  return true;
}
bool count_up(std::vector<int64_t>& numbers, size_t i) {
  ++numbers[i];
  return true;
}
/// Half of a size goes to the next one.
bool move_half(std::vector<int64_t>& numbers, size_t i) {
  if (i + 1 >= numbers.size() || numbers[i] < 2 || numbers[i] % 2 || numbers[i + 1] < 1) return false;
  numbers[i] /= 2;
  numbers[i + 1] *= 2;
  return true;
}

/// Two axes of each perm exchanged.
EditChanges perms_changed(const Emission& emission, Facts&) {
  EditChanges changes;
  const auto& nodes = emission.edit.nodes();
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto* perm = nodes[i]->is("Transpose") ? nodes[i]->ints_attribute("perm") : nullptr;
    if (!perm) continue;
    for (int one = 0; one < perm->size(); ++one)
      for (int other = one + 1; other < perm->size(); ++other)
        changes.push_back([=](Emission& changed) {
          attribute_of(*changed.edit.nodes()[i], "perm")->mutable_ints()->SwapElements(one, other);
        });
  }
  return changes;
}

void invert_perm(Emission&, Node& node) {
  auto* attribute = attribute_of(node, "perm");
  std::vector<int64_t> inverse(static_cast<size_t>(attribute->ints_size()));
  for (int i = 0; i < attribute->ints_size(); ++i) inverse[static_cast<size_t>(attribute->ints(i))] = i;
  set_attribute(node, GraphBuilder::attribute("perm", inverse));
}

/// Each Shape reads the axes one further on.
EditMutation axes_read(std::string change, int64_t shift) {
  const auto fits = [shift](const Node& node) { return node.is("Shape") && node.int_attribute("start", 0) + shift >= 0; };
  return at_each("run-time sizes", std::move(change), fits, [shift](Emission&, Node& node) {
    for (const char* name : {"start", "end"}) {
      const int64_t axis = node.int_attribute(name, 0);
      set_attribute(node, GraphBuilder::attribute(name, axis + shift));
    }
  });
}

EditChanges concats_reordered(const Emission& emission, Facts&) {
  EditChanges changes;
  const auto& nodes = emission.edit.nodes();
  for (size_t i = 0; i < nodes.size(); ++i)
    for (size_t piece = 0; nodes[i]->is("Concat") && piece + 1 < nodes[i]->inputs.size(); ++piece)
      changes.push_back([=](Emission& changed) {
        std::swap(changed.edit.nodes()[i]->inputs[piece], changed.edit.nodes()[i]->inputs[piece + 1]);
      });
  return changes;
}

/// Values of the same type and shape that the edit reads, or that are graph inputs: read for one another.
EditChanges reads_exchanged(const Emission& emission, Facts& facts) {
  std::vector<Value*> known(emission.edit.graph().inputs());
  const auto& nodes = emission.edit.nodes();
  const auto is_new = [&](const Value* value) { return std::find(nodes.begin(), nodes.end(), value->producer) != nodes.end(); };
  for (const Node* node : nodes)
    for (Value* value : node->inputs)
      if (value && !is_new(value) && std::find(known.begin(), known.end(), value) == known.end()) known.push_back(value);
  EditChanges changes;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (size_t input = 0; input < nodes[i]->inputs.size() && !nodes[i]->is("Shape"); ++input) {
      Value* read = nodes[i]->inputs[input];
      if (!read || is_new(read) || !facts.shape(*read)) continue;
      for (Value* other : known) {
        const MaybeShape shape = facts.shape(*other);
        if (other == read || !shape || *shape != facts.shape(*read).known() || facts.type(*other) != facts.type(*read))
          continue;
        changes.push_back([=](Emission& changed) { changed.edit.nodes()[i]->inputs[input] = other; });
      }
    }
  return changes;
}

EditMutation left_out(const std::string& op) {
  return at_each(op, "left out", is_op(op), [](Emission&, Node& node) { bypass(node); });
}

}  // namespace

std::vector<EditMutation> layout_node_mutations() {
  return {
      {"Transpose", "two axes exchanged", perms_changed},
      at_each("Transpose", "inverse", is_op("Transpose"), invert_perm),
      left_out("Transpose"),
      left_out("Reshape"),
      left_out("Expand"),
      left_out("Unsqueeze"),
      left_out("Squeeze"),
      left_out("Cast"),
      of_target("Reshape", "sizes exchanged", "Reshape", exchange_with_next),
      of_target("Reshape", "half of a size given to the next", "Reshape", move_half),
      of_target("Reshape", "size + 6", "Reshape", make_larger),
      of_target("Expand", "sizes exchanged", "Expand", exchange_with_next),
      of_target("Expand", "size + 6", "Expand", make_larger),
      of_target("Unsqueeze", "axis + 1", "Unsqueeze", count_up),
      of_target("Squeeze", "axis + 1", "Squeeze", count_up),
      axes_read("next axis read", 1),
      axes_read("axis before read", -1),
      {"run-time sizes", "in another order", concats_reordered},
      {"reads", "another value of the same shape", reads_exchanged},
  };
}

}  // namespace attn_opt
