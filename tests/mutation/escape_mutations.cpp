// What others read of the probabilities on their way to the product with V.
#include <algorithm>
#include <unordered_set>

#include "tests/mutation/mutation.h"

namespace attn_opt {
namespace {

/// True if VALUE is an output, or what another node than PRODUCT makes of its contents is one.
bool is_read_elsewhere(const Value& value, const Node& product) {
  return value.is_output || std::ranges::any_of(value.uses, [&](const Use& use) {
           return use.node && use.node != &product && !use.node->is("Shape") &&
                  std::ranges::any_of(use.node->outputs, [](const Value* made) { return made && made->is_output; });
         });
}

/// The values that others read too, from OPERAND of PRODUCT up to a softmax; none if no softmax leads to it.
std::vector<Value*> escaping_values(Value& operand, const Node& product) {
  constexpr size_t kMostNodes = 24;
  std::vector<Value*> escaping, pending{&operand};
  std::unordered_set<const Value*> seen{&operand};
  bool leads_from_softmax = false;
  for (size_t i = 0; i < pending.size() && i < kMostNodes; ++i) {
    Value& value = *pending[i];
    if (!value.producer) continue;
    if (is_read_elsewhere(value, product)) escaping.push_back(&value);
    leads_from_softmax |= value.producer->is("Softmax");
    if (value.producer->is("Softmax")) continue;
    for (Value* input : value.producer->inputs)
      if (input && seen.insert(input).second) pending.push_back(input);
  }
  return leads_from_softmax ? escaping : std::vector<Value*>{};
}

/// The values on the way of SDPA's probabilities that others read too.
std::vector<Value*> escaping_values(const Sdpa& sdpa) {
  const Node* product = sdpa.outputs.empty() ? nullptr : sdpa.outputs.front().value->producer;
  std::vector<Value*> escaping;
  if (!product) return escaping;
  for (Value* operand : product->inputs) {
    if (!operand) continue;
    const auto found = escaping_values(*operand, *product);
    escaping.insert(escaping.end(), found.begin(), found.end());
  }
  return escaping;
}

/// VALUE stands for the probabilities, whatever became of them up to it.
std::vector<Change<Sdpa>> taken_for_probabilities(const Sdpa& sdpa, Facts& facts) {
  std::vector<Change<Sdpa>> changes;
  if (sdpa.scores_output) return changes;
  for (Value* value : escaping_values(sdpa)) {
    const MaybeShape shape = facts.shape(*value);
    const bool is_right = sdpa.probabilities && sdpa.probabilities->value == value;
    if (is_right || !shape || shape->size() != 4 || facts.type(*value) != sdpa.type) continue;
    changes.emplace_back([value, axes = AxisMap::of(*shape, {Role::kBatch, Role::kHead, Role::kRow, Role::kFeature})](
                             Sdpa& changed) { changed.probabilities = OutputView{value, axes}; });
  }
  return changes;
}

}  // namespace

std::vector<DescriptionMutation> escape_mutations() {
  return {{"probabilities", "a value that others read further on taken for them", taken_for_probabilities}};
}

}  // namespace attn_opt
