// Types and shapes of a model that is being made, node by node, by ONNX's own inference.
#pragma once

#include <onnx/shape_inference/implementation.h>

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "attn_opt/status.h"

namespace attn_opt {

class TypeInference {
 public:
  /// MODEL has the imports and functions of the nodes, and outlives this.
  explicit TypeInference(const onnx::ModelProto& model) : model_(model) {}

  /// The type of the value NAME is TYPE; what it was before is forgotten. The result stays where it is.
  onnx::TypeProto* set_type(const std::string& name, const onnx::TypeProto& type);
  /// Null if it is not known.
  onnx::TypeProto* type(const std::string& name) const;
  /// The value NAME is CONTENTS, which outlives this.
  void set_contents(const std::string& name, const onnx::TensorProto& contents) { contents_[name] = &contents; }
  /// What is known of OLD_NAME is known of NEW_NAME too.
  void rename(const std::string& old_name, const std::string& new_name);

  /// Finds the types of NODE's outputs from those of its inputs. Bodies in NODE get types as well.
  /// Error: ONNX's reason, in one line.
  Expected<std::vector<onnx::TypeProto>> infer(onnx::NodeProto& node);

 private:
  const onnx::ModelProto& model_;
  std::deque<onnx::TypeProto> types_;
  std::unordered_map<std::string, onnx::TypeProto*> type_of_;
  std::unordered_map<std::string, const onnx::TensorProto*> contents_;
  onnx::shape_inference::DataValueMap shapes_;  ///< contents of values that hold sizes, as far as they are known
};

}  // namespace attn_opt
