// A graph in ONNX's textual syntax, written node by node.
#pragma once

#include <string>
#include <vector>

#include "tests/metamorphic/spelling.h"

namespace attn_opt {

class GraphText {
 public:
  GraphText(DataType type, Random& random) : type_(type), random_(random) {}

  /// A new input called NAME; SIZES are numbers or symbols.
  std::string input(const std::string& name, const std::string& type, const std::vector<std::string>& sizes);
  std::string float_input(const std::string& name, const std::vector<std::string>& sizes);
  void output(const std::string& name, const std::string& type, const std::vector<std::string>& sizes);
  void float_output(const std::string& name, const std::vector<std::string>& sizes);

  /// The result of OP; ATTRIBUTES as the syntax has them, "perm = [0, 1]".
  std::string node(const std::string& op, const std::vector<std::string>& inputs, const std::string& attributes = {});
  std::string node_called(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                          const std::string& attributes = {});
  /// OP of two operands in either order.
  std::string commuted(const std::string& op, const std::string& one, const std::string& other);
  std::string transpose(const std::string& value, const std::vector<int>& perm);
  /// Reshape to numbers, 0 and -1.
  std::string reshape(const std::string& value, const std::vector<int64_t>& sizes);
  /// NUMBER of the graph's type (or of TYPE), with none or one axis, as an initializer or a node.
  std::string number(double number);
  std::string number_of(DataType type, double number);
  std::string ints(const std::vector<int64_t>& values);
  /// Size of AXIS of VALUE as an int64 tensor of one element.
  std::string size_of(const std::string& value, int axis);

  std::string text(const std::string& name) const;

 private:
  std::string fresh() { return "v" + std::to_string(++count_); }
  std::string constant(const std::string& type, const std::string& dims, const std::string& elements);

  DataType type_;
  Random& random_;
  int count_ = 0;
  std::string inputs_, outputs_, initializers_, nodes_;
};

/// As the syntax calls TYPE.
std::string syntax_name(DataType type);

}  // namespace attn_opt
