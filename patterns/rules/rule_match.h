// Finds a rule's pattern in a graph.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "attn_opt/pattern.h"
#include "patterns/rules/rule.h"

namespace attn_opt {

/// What a rule's names stand for at one place of a graph.
struct RuleBinding {
  std::map<std::string, Value*> values;
  std::map<std::string, onnx::AttributeProto> attributes;  ///< the pattern's parameters, and sizes that are numbers
  std::map<std::string, Node*> nodes;                      ///< by the pattern's first output of each

  std::vector<std::string> operators() const;  ///< of the nodes
};

/// True if NODE is of the operator of WANTED, a node of a pattern.
bool is_operator(const onnx::NodeProto& wanted, const Node& node);

/// True if the operands of NODE's operator may be exchanged.
bool is_commutative(const onnx::NodeProto& node);

/// The pattern of RULE, its first output being made by ANCHOR. Operands of commutative operators are tried both ways.
/// Misses: "rule.structure" (what does not fit, PEELED being what did), "rule.where", "rule.too-many-ways".
Matched<RuleBinding> match_rule(const Rule& rule, const Node& anchor, const ModelGraph& view, Facts& facts);

}  // namespace attn_opt
