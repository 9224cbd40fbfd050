// The node that is being raised, and what is known of its inputs.
#pragma once

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

/// Elements of a constant input that conversions look at and comparisons keep.
inline constexpr int64_t kMaxInputElements = 1024;

class RaiseSite {
 public:
  /// NODE is of opset FROM. ROWS_KEEP_A_KEY: no mask of attention hides all keys of a row.
  RaiseSite(const Node& node, int from, bool rows_keep_a_key, Facts& facts)
      : node_(node), from_(from), rows_keep_a_key_(rows_keep_a_key), facts_(facts) {}

  const Node& node() const { return node_; }
  int from() const { return from_; }
  bool rows_keep_a_key() const { return rows_keep_a_key_; }
  /// Null if input I is omitted or its rank is not known.
  MaybeShape shape(size_t i) const { return node_.input(i) ? facts_.shape(*node_.input(i)) : nullptr; }
  DataType type(size_t i) const { return type_of(node_.input(i)); }
  DataType output_type(size_t i) const { return type_of(node_.output(i)); }
  /// Null if input I is not constant or has too many elements.
  const Tensor* constant(size_t i) const {
    const Tensor* tensor = node_.input(i) ? facts_.constant(*node_.input(i)) : nullptr;
    return tensor && tensor->size() <= kMaxInputElements ? tensor : nullptr;
  }

 private:
  DataType type_of(const Value* value) const { return value ? facts_.type(*value) : onnx::TensorProto::UNDEFINED; }

  const Node& node_;
  int from_;
  bool rows_keep_a_key_;
  Facts& facts_;
};

}  // namespace attn_opt
