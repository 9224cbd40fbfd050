// The operators that attention is written as.
//
//   Attention               of ONNX
//   MultiHeadAttention      of com.microsoft: as many heads of K and V as of Q
//   GroupQueryAttention     of com.microsoft: query heads share those of K and V; a softcap, a window
//
// Each says in a file of its own what it cannot express, what it says of keys by itself, and how its node is written. What a
// target's family is written as, operator_for() says.
#pragma once

#include "src/emit/causal.h"
#include "src/emit/operands.h"
#include "src/emit/outputs.h"

namespace attn_opt {

/// What the node is made of.
struct NodeParts {
  const WritingPlan& plan;
  const Operands& operands;
  Value* mask = nullptr;     ///< as fit_to_scores() makes it
  Value* lengths = nullptr;  ///< int64 (B)
  const KeyRules& rules;
  const FurtherOutputs& further;
};

struct AttentionOperator {
  KeySayings (*says)(const WritingPlan& plan, const Site& site);
  /// Misses "emit.opset", "target.contrib": what the description asks for and the operator lacks.
  Matched<void> (*check)(const WritingPlan& plan, Site& site);
  /// The same of the masks, once it is known which are said by the node.
  Matched<void> (*check_masks)(const WritingPlan& plan, const Causality& causality, Site& site);
  Matched<Node*> (*write)(const NodeParts& parts, Site& site);
  /// Y of NODE as the description has it.
  Matched<Value*> (*finish)(Node& node, const NodeParts& parts, Site& site) = [](Node& node, const NodeParts&, Site&) {
    return Matched<Value*>(node.output(0));
  };
};

extern const AttentionOperator kOnnxAttention, kMultiHeadAttention, kGroupQueryAttention;

/// What SDPA is written as by PLAN for TARGET.
const AttentionOperator& operator_for(const WritingPlan& plan, const Sdpa& sdpa, const TargetRules& target);
/// Miss "target.contrib": MATCH is of an operator that TARGET's family has, and stays.
Matched<void> check_anchor(const Match& match, const TargetRules& target);

/// Q, K, V, mask, past_key, past_value and lengths; null: omitted.
std::vector<Value*> inputs_of(const NodeParts& parts);
/// A node of OP with INPUTS, of which the last are given, and the outputs that PARTS asks for: Y, presents with a past, scores.
Node* write_node(const char* op, std::vector<Value*> inputs, const GraphBuilder::Attributes& attributes, const NodeParts& parts,
                 Site& site);

}  // namespace attn_opt
