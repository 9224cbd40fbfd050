// In which types the outputs of a run are rounded: a model of halves may give floats.
#pragma once

#include <string>
#include <unordered_map>

#include "attn_opt/executor.h"

namespace attn_opt {

/// Of what is computed from the inputs of a run, the type with the fewest digits on the way. Weights of halves that are cast to
/// float leave no trace in it: each run rounds them alike.
class RoundingTypes {
 public:
  explicit RoundingTypes(const onnx::GraphProto& graph);

  /// Takes note of RUN, after the nodes that it reads.
  void note(const NodeRun& run);

  /// For the output NAME of the graph, which is of TYPE; TYPE where none has fewer digits.
  DataType of(const std::string& name, DataType type) const;

 private:
  std::unordered_map<std::string, DataType> types_;  ///< UNDEFINED: not floating
  DataType within_ = onnx::TensorProto::UNDEFINED;   ///< of the nodes in bodies and functions since the last one of the graph
};

}  // namespace attn_opt
