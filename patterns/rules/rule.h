// A rule: attention as its user spells it, and as an Attention node, each an ONNX function.
//
//   pattern                                       replacement
//   k ─ Transpose ┐                               q ─┐
//             q ─ MatMul ─ Mul ─ Softmax ┐        k ─┼─ Attention(scale) ─ y
//                                    v ─ MatMul ─ y    v ─┘
//
// The replacement's Attention node is only described, never written: the back end writes what the target wants.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attn_opt/status.h"
#include "attn_opt/tensor.h"

namespace attn_opt {

/// What a WHERE line asks of a value.
struct RuleConstraint {
  std::string where;  ///< file and line
  std::string value;
  bool is_constant = false;
  std::vector<DataType> types;                   ///< one of them; empty: any
  std::optional<std::vector<std::string>> dims;  ///< numbers, names of sizes, or "?"
};

struct Rule {
  std::string name, about;
  std::vector<RuleConstraint> constraints;
  std::vector<std::string> assumed;  ///< ids of preconditions
  onnx::FunctionProto pattern, replacement;
};

/// The node of FUNCTION that makes VALUE; null for an input.
const onnx::NodeProto* maker_of(const onnx::FunctionProto& function, const std::string& value);

/// False for a rule that is a rewrite: its replacement has no Attention node of ai.onnx.
bool writes_attention(const Rule& rule);

/// Parses and checks the text of a rule. Errors as parse_rule().
Expected<Rule> read_rule(std::string_view text, const std::string& where);

}  // namespace attn_opt
