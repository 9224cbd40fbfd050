// What rules of attention and rewrites have in common: where a rule may match, and the nodes of its replacement.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attn_opt/rewrite.h"
#include "patterns/rules/rule_match.h"

namespace attn_opt {

/// Looks for one rule, which must outlive it.
class RuleSearch {
 public:
  explicit RuleSearch(const Rule& rule);

  bool is_anchor(const Node& node) const { return is_operator(*anchor_, node); }
  /// As match_rule(). A miss that got nowhere has the id NOTHING: a rule is tried at every operator like its last, and worth a
  /// line is only what it fits but for a node in four.
  Matched<RuleBinding> find(const Node& anchor, const ModelGraph& view, Facts& facts, std::string_view nothing) const;

 private:
  /// Which operand of ANCHOR is not made by what the rule says; empty if all are.
  std::string other_operand(const Node& anchor, Facts& facts) const;

  const Rule* rule_;
  const onnx::NodeProto* anchor_;
  std::vector<const onnx::NodeProto*> operands_;  ///< what makes the anchor's inputs; null: no matter
  int64_t nodes_;                                 ///< that are to be found; constants are not
};

/// What the pattern's output NAME is in the model; null if it is none of its outputs.
Value* value_of_output(const std::string& name, const Rule& rule, const RuleBinding& binding);

/// The attributes of PROTO, a node of RULE's replacement. Miss: "rule.parameter", at ANCHOR.
Matched<GraphBuilder::Attributes> attributes_of(const onnx::NodeProto& proto, const Rule& rule, const RuleBinding& binding,
                                                const Node* anchor);

/// "Op" or "domain::Op".
std::string operator_of(const onnx::NodeProto& proto);

/// RULE, of a file called WHERE, as a pattern of attention or as a rewrite. Error: kInvalidInput if it is the other.
Expected<std::unique_ptr<Pattern>> pattern_of(Rule rule, const std::string& where);
Expected<std::unique_ptr<Rewrite>> rewrite_of(Rule rule, const std::string& where);

}  // namespace attn_opt
