// The numbers that a rule's functions hold.
#pragma once

#include <map>
#include <string>

#include "attn_opt/graph_builder.h"
#include "attn_opt/tensor.h"

namespace attn_opt {

/// True for Constant of ai.onnx.
bool is_constant_node(const onnx::NodeProto& node);

/// The contents of NODE, a Constant; without value for one that is no tensor or number.
Tensor constant_of(const onnx::NodeProto& node);

/// The values of a replacement while it is made. What is constant is an initializer once a node reads it, and equal ones are
/// one.
class ReplacementValues {
 public:
  explicit ReplacementValues(GraphBuilder& build) : build_(&build) {}

  void set(const std::string& name, Value* value) { made_[name] = value; }
  /// Null for "".
  Value* at(const std::string& name);
  /// True if PROTO is a Constant, or CastLike of one to a known type, and so is no node of its own.
  bool takes_constant(const onnx::NodeProto& proto);

 private:
  GraphBuilder* build_;
  std::map<std::string, Value*> made_;
  std::map<std::string, Tensor> constants_;
};

}  // namespace attn_opt
