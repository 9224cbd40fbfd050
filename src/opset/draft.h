// A node on its way to another opset, apart from the model.
//
// Its inputs are called in.0, in.1, ... and its outputs out.0, out.1, ... whatever the model calls them, so
// that drafts of equal nodes are equal. Nodes that the conversion puts before or behind it are written for
// every opset from 13 on.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "attn_opt/graph.h"
#include "attn_opt/tensor.h"

namespace attn_opt {

/// NODE under the names of drafts; without its own name, documentation and metadata.
onnx::NodeProto canonical_node(const Node& node);
std::string draft_input(size_t i);
std::string draft_output(size_t i);
/// The number of the input or output that NAME stands for, if its KIND is "in." or "out."; else -1.
int draft_number(const std::string& name, std::string_view kind);

class Draft {
 public:
  explicit Draft(onnx::NodeProto canonical) : node_(std::move(canonical)) {}
  /// A conversion made elsewhere. MAIN: the index in NODES of the one that stands for the original.
  Draft(std::vector<onnx::NodeProto> nodes, size_t main);

  const onnx::NodeProto& node() const { return node_; }
  const std::vector<onnx::NodeProto>& before() const { return before_; }
  const std::vector<onnx::NodeProto>& behind() const { return behind_; }
  bool changed() const { return changed_; }
  /// True if more than the operator's name and attributes changed.
  bool rewired() const { return rewired_; }
  /// All nodes in their order.
  std::vector<const onnx::NodeProto*> nodes() const;

  /// Null if it is not set, or is given by the caller of the function that the node is in: see
  /// given_by_caller().
  const onnx::AttributeProto* attribute(const std::string& name);
  int64_t int_attribute(const std::string& name, int64_t otherwise);
  std::string string_attribute(const std::string& name, const std::string& otherwise);
  /// Name of an attribute that was asked for and is not known here; empty if there is none.
  const std::string& given_by_caller() const { return given_by_caller_; }

  void set_op(const std::string& op);
  void set(const onnx::AttributeProto& attribute);
  void set_text(const std::string& attribute, const std::string& value) { set(text(attribute, value)); }
  static onnx::AttributeProto text(const std::string& attribute, const std::string& value);
  void drop(const std::string& attribute);
  bool has_input(int i) const { return i < node_.input_size() && !node_.input(i).empty(); }
  void set_input(int i, const std::string& name);
  void drop_outputs_from(int count);

  using Attributes = std::vector<onnx::AttributeProto>;
  /// Puts a node before this one and returns the name of its output.
  std::string add(const std::string& op, const std::vector<std::string>& inputs, const Attributes& attributes = {});
  std::string add_constant(const Tensor& tensor);
  std::string add_ints(const std::vector<int64_t>& values);
  /// The node makes a value of the returned name instead of output I, which a later append() makes.
  std::string divert_output(int i);
  void append(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
              const Attributes& attributes = {});

 private:
  std::string fresh() { return "t." + std::to_string(names_++); }

  onnx::NodeProto node_;
  std::vector<onnx::NodeProto> before_, behind_;
  std::string given_by_caller_;
  int names_ = 0;
  bool changed_ = false;
  bool rewired_ = false;
};

}  // namespace attn_opt
