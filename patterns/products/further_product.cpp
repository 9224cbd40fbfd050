#include "patterns/products/further_product.h"

#include <algorithm>
#include <vector>

#include "attn_opt/canonical.h"
#include "patterns/probabilities/probability_walk.h"
#include "patterns/products/product_letters.h"
#include "patterns/products/products.h"
#include "patterns/readers.h"
#include "src/match/operator_map.h"

namespace attn_opt {
namespace {

/// True for what may stand between a softmax and the products that share it.
bool may_pass_probabilities(const Node& node) {
  static constexpr OperatorSet kOperators = {"Cast",      "CastLike", "Identity", "Dropout", "Reshape", "Squeeze", "Unsqueeze",
                                             "Transpose", "Slice",    "Split",    "Where",   "Mul",     "Div"};
  return kOperators.has(node);
}

/// True if NODE may hand on probabilities, told by names of operators: it is one that they pass, or may change nothing, as a
/// sum beside a number may.
bool may_hand_on(const Node& node) {
  if (node.is("Add") || node.is("Sub")) return may_be_number(node.input(0)) || may_be_number(node.input(1));
  return may_pass_probabilities(node) || may_be_no_op(node);
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

/// Transposes that together may swap queries and keys.
constexpr int kMaxSwaps = 4;

/// True if NODE is a product, or the factor of one, or so many Transposes end at one.
bool ends_at_product(const Node& node, int transposes, Facts& facts) {
  if (makes_product(node, facts)) return true;
  const bool is_added_up = node.is("Mul");
  if (!(node.is("Transpose") || is_added_up) || transposes == 0) return false;
  return std::ranges::any_of(readers_of(*node.outputs[0], facts).all, [&](const Reader& reader) {
    if (!reader.node || reader.node->graph != node.graph) return false;
    return is_added_up ? factors_added_up(*reader.node, facts) == &node : ends_at_product(*reader.node, transposes - 1, facts);
  });
}

/// True if another product reads VALUE, which NODE reads, as well, or reads it transposed: cheap, since this is asked of every
/// product.
bool is_shared(Value& value, const Node& node, Facts& facts) {
  if (!value.producer || (value.uses.size() == 1 && value.uses[0].node == &node)) return false;
  return std::ranges::any_of(readers_of(value, facts).all, [&](const Reader& reader) {
    return reader.node && reader.node != &node && reader.node->graph == node.graph &&
           ends_at_product(*reader.node, kMaxSwaps, facts);
  });
}

/// INPUT of PRODUCT, or what it is the transpose of, if others share that; null if none do.
Value* shared_source(Value& input, const Node& product, Facts& facts) {
  Value* source = &canonical(input, facts);
  const Node* reader = &product;
  for (int step = 0; step <= kMaxSwaps; ++step) {
    if (is_shared(*source, *reader, facts)) return source;
    reader = source->producer;
    if (!reader || !reader->is("Transpose")) return nullptr;
    source = &canonical(*reader->inputs[0], facts);
  }
  return nullptr;
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
  for (Value* input : operands_of(product, context.facts)) {
    Value* source = input ? shared_source(*input, product, context.facts) : nullptr;
    if (source) values.push_back(source);
  }
  for (size_t i = 0; i < values.size() && values.size() < kMaxValues; ++i) {
    Node* maker = values[i]->producer;
    if (!maker || maker->graph != product.graph) continue;
    auto softmax = may_be_softmax(*maker) ? softmax_at(*maker, context) : std::nullopt;
    if (softmax && is_further(*softmax, product, context)) return softmax;
    if (!may_pass_probabilities(*maker)) continue;
    for (Value* input : maker->inputs) {
      Value* source = input ? &canonical(*input, context.facts) : nullptr;
      if (source && std::ranges::find(values, source) == values.end()) values.push_back(source);
    }
  }
  return std::nullopt;
}

}  // namespace attn_opt
