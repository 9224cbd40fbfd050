// Products, shapes and permutations said otherwise.
#include <algorithm>
#include <optional>
#include <utility>

#include "tests/metamorphic/respelling.h"

namespace attn_opt {
namespace {

constexpr int kFirstWithIntegerConstants = 9;

std::vector<int64_t> swap_of_last_two(size_t rank) {
  std::vector<int64_t> perm(rank);
  for (size_t i = 0; i < rank; ++i) perm[i] = static_cast<int64_t>(i);
  std::swap(perm[rank - 1], perm[rank - 2]);
  return perm;
}

onnx::NodeProto transpose(const std::string& from, const std::string& to, const std::vector<int64_t>& perm) {
  onnx::NodeProto node = node_of("Transpose", {from}, to);
  set_attribute(node, "perm", perm);
  return node;
}

/// A B as the transpose of B^T A^T.
std::vector<Change> transposed_products(Spelling& spelling, Random&) {
  std::vector<Change> changes;
  for (Node* node : spelling.nodes()) {
    if (!node->is("MatMul")) continue;
    const MaybeShape one = spelling.facts().shape(*node->inputs[0]);
    const MaybeShape other = spelling.facts().shape(*node->inputs[1]);
    if (!one || !other || one->size() != other->size() || one->size() < 2) continue;
    changes.push_back([node, perm = swap_of_last_two(one->size())](Spelling& d) {
      const std::string output = node->proto->output(0), made = d.fresh("transposed");
      for (int i : {0, 1}) {
        const std::string turned = d.fresh("transposed");
        d.insert_before(*node, transpose(node->proto->input(i), turned, perm));
        node->proto->set_input(i, turned);
      }
      node->proto->mutable_input()->SwapElements(0, 1);
      node->proto->set_output(0, made);
      d.insert_after(*node, transpose(made, output, perm));
    });
  }
  return changes;
}

std::vector<int64_t> perm_of(const Node& node, size_t rank) {
  std::vector<int64_t> perm;
  if (const auto* given = node.ints_attribute("perm")) perm.assign(given->begin(), given->end());
  for (size_t i = rank; perm.size() < rank && i-- > 0;) perm.push_back(static_cast<int64_t>(i));
  return perm;
}

/// A Transpose as two, the first of which is any.
std::vector<Change> split_transposes(Spelling& spelling, Random& random) {
  std::vector<Change> changes;
  for (Node* node : spelling.nodes()) {
    const MaybeShape shape = node->is("Transpose") ? spelling.facts().shape(*node->inputs[0]) : nullptr;
    if (!shape || shape->size() < 2) continue;
    const size_t rank = shape->size();
    const auto whole = perm_of(*node, rank);
    auto first = whole;
    random.shuffle(first);
    std::vector<int64_t> second(rank);
    for (size_t i = 0; i < rank; ++i) second[i] = std::find(first.begin(), first.end(), whole[i]) - first.begin();
    changes.push_back([node, first, second](Spelling& d) {
      const std::string between = d.fresh("transposed");
      d.insert_before(*node, transpose(node->proto->input(0), between, first));
      node->proto->set_input(0, between);
      set_attribute(*node->proto, "perm", second);
    });
  }
  return changes;
}

/// What a Reshape from BEFORE to AFTER can be given: numbers, 0 for an axis that stays, -1 once for what is not known.
std::optional<std::vector<int64_t>> reshape_target(const Shape& before, const Shape& after, Random& random) {
  std::vector<int64_t> target;
  bool inferred = false, may_be_empty = false;
  for (const Dim& size : after) may_be_empty = may_be_empty || size.is(0);
  if (may_be_empty) return std::nullopt;
  for (size_t axis = 0; axis < after.size(); ++axis) {
    const bool stays = axis < before.size() && before[axis] == after[axis];
    if (stays && (!after[axis].is_constant() || random.coin()))
      target.push_back(0);
    else if (after[axis].is_constant())
      target.push_back(after[axis].value());
    else if (!std::exchange(inferred, true))
      target.push_back(-1);
    else
      return std::nullopt;
  }
  const bool is_fixed = std::ranges::all_of(after, [](const Dim& size) { return size.is_constant(); });
  if (is_fixed && !target.empty() && random.coin()) target[random.below(target.size())] = -1;
  return target;
}

void read_target(Spelling& spelling, Node& node, const std::vector<int64_t>& target) {
  node.proto->set_op_type("Reshape");
  node.proto->clear_attribute();
  while (node.proto->input_size() > 1) node.proto->mutable_input()->RemoveLast();
  node.proto->add_input(spelling.add_constant(node, int64_tensor(target)));
}

/// Reshape, Squeeze, Unsqueeze and Flatten as a Reshape to numbers, 0 and -1.
std::vector<Change> reshapes(Spelling& spelling, Random& random) {
  std::vector<Change> changes;
  for (Node* node : spelling.nodes()) {
    const bool regroups = node->is("Reshape") || node->is("Squeeze") || node->is("Unsqueeze") || node->is("Flatten");
    if (!regroups || spelling.opset(*node) < kFirstWithIntegerConstants) continue;
    const MaybeShape before = spelling.facts().shape(*node->inputs[0]);
    const MaybeShape after = spelling.facts().shape(*node->outputs[0]);
    const auto target = before && after ? reshape_target(*before, *after, random) : std::nullopt;
    if (target) changes.push_back([node, target](Spelling& d) { read_target(d, *node, *target); });
  }
  return changes;
}

/// The one axis of 1 by which LONGER exceeds SHORTER; -1 if they differ otherwise.
int64_t extra_axis(const Shape& shorter, const Shape& longer) {
  if (longer.size() != shorter.size() + 1) return -1;
  for (size_t axis = 0; axis < longer.size(); ++axis) {
    Shape rest = longer;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(axis));
    if (longer[axis].is(1) && rest == shorter) return static_cast<int64_t>(axis);
  }
  return -1;
}

/// A Reshape that adds or drops an axis of 1 as Unsqueeze or Squeeze.
std::vector<Change> reshapes_of_one_axis(Spelling& spelling, Random&) {
  constexpr int kFirstWithAxesAsInput = 13;
  std::vector<Change> changes;
  for (Node* node : spelling.nodes()) {
    if (!node->is("Reshape") || spelling.opset(*node) < kFirstWithAxesAsInput) continue;
    const MaybeShape before = spelling.facts().shape(*node->inputs[0]);
    const MaybeShape after = spelling.facts().shape(*node->outputs[0]);
    if (!before || !after) continue;
    const int64_t added = extra_axis(*before, *after), dropped = extra_axis(*after, *before);
    if (added < 0 && dropped < 0) continue;
    changes.push_back([node, added, dropped](Spelling& d) {
      read_target(d, *node, {std::max(added, dropped)});
      node->proto->set_op_type(added >= 0 ? "Unsqueeze" : "Squeeze");
    });
  }
  return changes;
}

/// A Reshape through the flat tensor.
std::vector<Change> split_reshapes(Spelling& spelling, Random&) {
  std::vector<Change> changes;
  for (Node* node : spelling.nodes()) {
    const MaybeShape after = node->is("Reshape") ? spelling.facts().shape(*node->outputs[0]) : nullptr;
    const IntegerData* target = after ? spelling.facts().integers(*node->inputs[1]) : nullptr;
    if (!target || spelling.opset(*node) < kFirstWithIntegerConstants) continue;
    // A 0 copies a size of the input, which the flat tensor does not have.
    const bool copies =
        std::ranges::any_of(target->values, [](const Dim& size) { return !size.is_constant() || size.value() == 0; });
    if (copies) continue;
    changes.push_back([node](Spelling& d) {
      const std::string flat = d.fresh("flat");
      const std::string shape = d.add_constant(*node, int64_tensor({-1}));
      d.insert_before(*node, node_of("Reshape", {node->proto->input(0), shape}, flat));
      node->proto->set_input(0, flat);
    });
  }
  return changes;
}

/// Concat(a, b, c, ...) as Concat(a, Concat(b, c, ...)).
std::vector<Change> nested_concats(Spelling& spelling, Random&) {
  std::vector<Change> changes;
  for (Node* node : spelling.nodes()) {
    if (!node->is("Concat") || node->inputs.size() < 3) continue;
    changes.push_back([node](Spelling& d) {
      onnx::NodeProto inner = *node->proto;
      inner.clear_name();
      inner.mutable_input()->DeleteSubrange(0, 1);
      inner.set_output(0, d.fresh("concatenated"));
      while (node->proto->input_size() > 1) node->proto->mutable_input()->RemoveLast();
      node->proto->add_input(inner.output(0));
      d.insert_before(*node, std::move(inner));
    });
  }
  return changes;
}

}  // namespace

std::vector<Respelling> layout_respellings() {
  std::vector<Respelling> all = {{"transpose of the transposed product", transposed_products},
                                 {"Transpose in two", split_transposes},
                                 {"Reshape to numbers, 0 and -1", reshapes},
                                 {"Reshape as Squeeze or Unsqueeze", reshapes_of_one_axis},
                                 {"Reshape through the flat tensor", split_reshapes},
                                 {"Concat in two", nested_concats}};
  for (Respelling& respelling : all) respelling.keeps_operators = false;
  return all;
}

}  // namespace attn_opt
