// What ONNX changed of operators up to one opset.
#pragma once

#include <optional>
#include <string>

#include "src/opset/schema_steps.h"

namespace attn_opt {

class OperatorChanges {
 public:
  explicit OperatorChanges(int to) : to_(to) {}

  /// The changes of the ai.onnx operator OP after opset FROM; null if it does not exist in FROM, or is gone for good.
  const std::vector<SchemaStep>* steps(const std::string& op, int from) { return history_.steps(op, from, to_); }
  /// True if no node of OP is another one after opset FROM.
  bool never_changes(const std::string& op, int from);
  /// What stands in the way of a node that can only be left as it is; nothing if it is the same in the new opset.
  std::optional<std::string> of_node(const onnx::NodeProto& node, int from, const TypeLookup& type_of = unknown_types());
  /// True if NODE of opset FROM, lower or higher, is the same in the new one whatever its types are.
  bool leave(const onnx::NodeProto& node, int from);

 private:
  static TypeLookup unknown_types();

  int to_;
  SchemaHistory history_;
  std::map<int, std::unordered_map<std::string, bool>> never_changes_;
};

/// The first change of STEP that touches NODE; null if none does.
const SchemaChange* first_touching(const SchemaStep& step, const onnx::NodeProto& node, const TypeLookup& type_of);

/// " since opset VERSION", to end a sentence.
std::string since(int version);

std::string no_such_operator(const std::string& op, int opset);

}  // namespace attn_opt
