// Attributes that became inputs, and axes, for any version of an operator.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "src/match/shape_rules/shape_rule.h"

namespace attn_opt {

/// AXIS counted from the front; nullopt if it is outside [-RANK, RANK).
std::optional<size_t> axis_in(int64_t axis, size_t rank);

/// True for a Softmax or LogSoftmax that takes all axes from its own on for one, as before opset 13.
bool flattens(const Node& node);
/// The axis that NODE, a Softmax or LogSoftmax, names or works along by default: it may be counted from the last.
int64_t softmax_axis(const Node& node);
/// The one axis of SHAPE along which it works: of several that it takes for one, that with more than one element; nullopt if
/// there are more.
std::optional<size_t> only_softmax_axis(const Node& node, const Shape& shape);

/// True for what may make a copy of an input, or the same in another order: told by names of operators.
bool may_copy(const Node& node);
/// What VALUE may be a copy of, which is not fixed if anything else is there; null if it is none.
const Value* copied(const Value& value);

/// A list of integers that a node holds as an attribute or, in later versions, as an input.
struct IntegerList {
  bool given = false;                          ///< false: the node does not say
  std::optional<std::vector<int64_t>> values;  ///< nullopt: given, but not known
};
/// The elements of an ATTRIBUTE of NODE or, in later versions, of its INPUT; empty if they are not given, or not known.
std::vector<Dim> dims_given(const Node& node, const char* attribute, int input, Facts& facts);
IntegerList integer_list(const RuleContext& context, std::string_view attribute, size_t input);

/// The axes of Squeeze, Unsqueeze, ReduceX, counted from the front of RANK; nullopt if they are not known or
/// invalid. ABSENT stands for a node that does not give any.
std::optional<std::vector<size_t>> axes_of(const RuleContext& context, size_t rank, std::vector<size_t> absent);

/// True for a Dropout (of opset 7 or later) that passes its input through.
bool is_inference_dropout(const RuleContext& context);

std::vector<size_t> all_axes(size_t rank);

/// What is cut into the pieces that NODE, a ConcatFromSequence, joins again as they were, if its RANK is known; null if it is
/// any other.
Value* cut_and_joined(const Node& node, const std::function<std::optional<size_t>(const Value&)>& rank);

}  // namespace attn_opt
