// How ONNX changed an operator from one opset to another, read from its schemas.
#pragma once

#include <onnx/defs/schema.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "attn_opt/tensor.h"

namespace attn_opt {

/// A difference between two versions of an operator that makes nodes invalid or gives them another meaning.
struct SchemaChange {
  enum class Kind {
    kDeprecated,
    kAttributeRemoved,
    kAttributeType,
    kAttributeDefault,
    kAttributeRequired,
    kInputRemoved,
    kInputRequired,
    kInputTypes,  ///< some are no longer allowed
    kOutputRemoved,
    kOutputTypes,
    kArity,  ///< one input or output became a repeated one, or the reverse
  };
  Kind kind;
  std::string name;  ///< of the attribute, input or output
  int position = 0;
  onnx::DataTypeSet types = {};  ///< allowed from now on
};

/// What a schema that allows fewer types asks of a node: the type of its input or output at a position,
/// UNDEFINED if it is not known.
using TypeLookup = std::function<DataType(SchemaChange::Kind kind, int position)>;

/// True if NODE, valid before the change, may be invalid or mean something else after it.
bool touches(const SchemaChange& change, const onnx::NodeProto& node, const TypeLookup& type_of);
std::string to_string(const SchemaChange& change);

struct SchemaStep {
  int version = 0;                    ///< opset in which the operator changed
  std::vector<SchemaChange> changes;  ///< empty: types were added, or attributes, inputs and outputs that may be omitted
};

class SchemaHistory {
 public:
  /// The changes of the ai.onnx operator OP after opset FROM up to TO; null if it does not exist in FROM, or
  /// is gone for good. Valid as long as the history lives.
  const std::vector<SchemaStep>* steps(const std::string& op, int from, int to);

 private:
  std::map<std::pair<int, int>, std::unordered_map<std::string, std::vector<SchemaStep>>> steps_;
};

}  // namespace attn_opt
