// Values that an operator computes inside and the graph has no value for: made above its node, unplaced.
#pragma once

#include "attn_opt/pattern.h"
#include "src/graph/operator_name.h"

namespace attn_opt {

class InnerValues {
 public:
  InnerValues(Node& node, MatchContext& context)
      : context_(context), draft_(context.view, node), build_(draft_, context.unplaced, node.label()) {}
  /// What was made is there for the next match.
  ~InnerValues() { draft_.enter(context_.unplaced); }
  InnerValues(const InnerValues&) = delete;
  InnerValues& operator=(const InnerValues&) = delete;

  GraphBuilder& build() { return build_; }
  Value* size(Value& value, int64_t axis);  ///< int64 [1], a constant where it is known
  Value* sum(Value* one, Value* other) { return build_.node("Add", {one, other}); }
  /// SIZE, of an axis of VALUE, as it is read from an input, so that it is one value wherever it is asked for; else from what
  /// lies furthest above VALUE, which need not be made for it then. Null if nothing has it.
  Value* size_above(const Dim& size, Value& value);
  Value* scaled(Value* value, double factor);   ///< VALUE itself where FACTOR is 1
  Value* int64(Value& integers);                ///< the same numbers
  Value* number(int64_t value, DataType type);  ///< rank 0
  Value* positions(Value* size);                ///< int64 [SIZE]: 0, 1, ...
  Value* unsqueezed(Value* value, const std::vector<int64_t>& axes);
  Value* raised(Value* value, size_t rank);  ///< with leading axes of size 1 up to RANK; itself if it has as many
  Value* reshaped(Value* value, const std::vector<int64_t>& shape);
  Value* transposed(Value* value, const std::vector<int64_t>& perm);  ///< Transposes of Transposes are one, or none
  Value* swapped(Value* value, size_t rank);                          ///< with its last two axes, of RANK, exchanged
  /// OP, Reshape or Expand, of VALUE to SHAPE, sizes of values above WHOLE; null where one is not found.
  Value* shaped(const std::string& op, Value* value, const Shape& shape, Value& whole);
  /// What NODE makes with VALUE as its input number INPUT.
  Value* again(const Node& node, size_t input, Value* value);
  /// What NODE makes of INPUTS, or would as OP.
  Value* again(const Node& node, const std::vector<Value*>& inputs) { return again(node, operator_name(node), inputs); }
  Value* again(const Node& node, const std::string& op, const std::vector<Value*>& inputs);
  Value* slice(Value* value, Value* begin, Value* end, int64_t axis);
  Value* concat(const std::vector<Value*>& parts, int64_t axis);
  /// VALUE cut along AXIS into pieces of SIZES.
  std::vector<Value*> split(Value* value, const std::vector<int64_t>& sizes, int64_t axis);
  /// 0 where KEEP is true and FILL elsewhere, or the lowest number of TYPE if that is above FILL.
  Value* additive(Value* keep, double fill, DataType type);

 private:
  MatchContext& context_;
  Edit draft_;
  GraphBuilder build_;
};

}  // namespace attn_opt
