// Einsums of one operand that only move its axes, as "abc->cab" does: Transposes for as long as attention is looked for.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <string>

namespace attn_opt {

class RespelledEinsums {
 public:
  /// Writes those of MODEL as Transposes.
  explicit RespelledEinsums(onnx::ModelProto& model);
  /// Writes those that are left in MODEL as they were.
  void restore(onnx::ModelProto& model) const;

 private:
  std::multimap<std::string, onnx::NodeProto> read_;  ///< by the name of what they make
};

}  // namespace attn_opt
