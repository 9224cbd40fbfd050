#include "patterns/products/further_product.h"

#include <algorithm>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/probabilities/probability_walk.h"
#include "patterns/products/product_letters.h"
#include "patterns/products/products.h"
#include "patterns/readers.h"
#include "src/match/node_forms.h"
#include "src/match/operator_map.h"

namespace attn_opt {
namespace {

/// What VALUE may be a copy of, or that moved, told by names of operators.
const Value* before_copies(const Value* value) {
  constexpr int kMostCopies = 8;
  for (int step = 0; value && step < kMostCopies; ++step) {
    const Value* before = copied(*value);
    if (!before) break;
    value = before;
  }
  return value;
}

/// True for what may stand between a softmax and the products that share it, told by names of operators: steps, moves, sums of
/// a value and itself, and what may change nothing, as a sum beside a number may.
bool may_hand_on(const Node& node) {
  static constexpr OperatorSet kOperators = {"Cast",    "CastLike",  "Identity",  "Dropout", "Reshape",
                                             "Squeeze", "Unsqueeze", "Transpose", "Slice",   "Split",
                                             "Concat",  "Where",     "Mul",       "Div",     "Neg"};
  if (kOperators.has(node)) return true;
  if (!has(node, Trait::kAdds)) return may_be_no_op(node);
  const Value* first = before_copies(node.input(0));
  return std::ranges::all_of(node.inputs, [&](const Value* input) { return before_copies(input) == first; }) ||
         std::ranges::any_of(node.inputs, [](const Value* input) { return may_be_number(input); });
}

/// False if no operand of PRODUCT can be made of a softmax. Cheap, since most products of a model are projections.
bool may_read_probabilities(const Node& product, Facts& facts) {
  constexpr size_t kMaxMakers = 64;
  std::vector<const Node*> makers;
  const auto add_makers = [&makers](const Node& reader) {
    for (const Value* input : reader.inputs)
      if (input && input->producer) makers.push_back(input->producer);
  };
  const Node* factors = factors_added_up(product, facts);
  add_makers(factors ? *factors : product);
  for (size_t i = 0; i < makers.size(); ++i) {
    const Node& maker = *makers[i];
    if (makers.size() > kMaxMakers || may_be_softmax(maker)) return true;
    if (may_hand_on(maker)) add_makers(maker);
  }
  return false;
}

/// True if several read VALUE, or what may be a copy of it: cheap, since this is asked of every product.
bool is_shared(const Value& value) {
  constexpr int kMostCopies = 8;
  const Value* seen = &value;
  for (int step = 0; seen && seen->uses.size() == 1 && step < kMostCopies; ++step) {
    const Node* only = seen->uses[0].node;
    seen = only && may_be_no_op(*only) ? only->output(0) : nullptr;
  }
  return seen && seen->uses.size() > 1;
}

/// is_shared() of VALUE, or of a value between it and what it copies.
bool is_copy_shared(Value& value, Facts& facts) {
  constexpr int kMostCopies = 8;
  Value* seen = &value;
  for (int step = 0; seen && step < kMostCopies; ++step) {
    if (is_shared(*seen)) return true;
    Value* before = seen->producer ? seen->producer->input(0) : nullptr;
    seen = before && &canonical(*before, facts) == &canonical(value, facts) ? before : nullptr;
  }
  return false;
}

/// True if SOFTMAX is followed by products of which PRODUCT is one, and not the first.
bool is_further(const SoftmaxSite& softmax, const Node& product, MatchContext& context) {
  if (softmax.divided) return false;
  const auto walk = walk_probabilities(softmax, &product, context);
  return walk && walk->product == &product && walk->products.front() != &product;
}

}  // namespace

std::optional<SoftmaxSite> softmax_of_further_product(Node& product, MatchContext& context) {
  constexpr size_t kMaxValues = 32;
  if (!may_read_probabilities(product, context.facts)) return std::nullopt;
  std::vector<Value*> values;
  bool are_shared = false;
  for (Value* input : operands_of(product, context.facts)) {
    if (!input) continue;
    are_shared = are_shared || is_copy_shared(*input, context.facts);
    values.push_back(&canonical(*input, context.facts));
  }
  for (size_t i = 0; i < values.size() && values.size() < kMaxValues; ++i) {
    Node* maker = values[i]->producer;
    if (!maker || maker->graph != product.graph) continue;
    are_shared = are_shared || is_shared(*values[i]);
    auto softmax = are_shared && may_be_softmax(*maker) ? multiple_of_softmax_at(*maker, context) : std::nullopt;
    if (softmax && is_further(*softmax, product, context)) return softmax;
    if (!may_hand_on(*maker)) continue;
    for (Value* input : maker->inputs) {
      are_shared = are_shared || (input && is_copy_shared(*input, context.facts));
      Value* source = input ? &canonical(*input, context.facts) : nullptr;
      if (source && std::ranges::find(values, source) == values.end()) values.push_back(source);
    }
  }
  return std::nullopt;
}

}  // namespace attn_opt
