// A shape rule computes types, shapes and integer contents of one node's outputs from the facts of its
// inputs.
//
// Rules are listed by family, one table a file shape_rules_*.cpp. A rule sets what it can; what it leaves
// open is filled by ONNX's own shape inference for that node. It must not set anything that a legal run can
// contradict, except through assume_equal.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/match/facts/fact_store.h"

namespace attn_opt {

/// An axis of a node's input, if that is of RANK.
struct InputAxis {
  size_t input = 0, rank = 0, axis = 0;
};

class RuleContext {
 public:
  RuleContext(FactStore& store, const Node& node);

  const Node& node() const { return node_; }
  FactStore& store() const { return store_; }
  int opset() const { return opset_; }  ///< version of the node's own domain
  bool has(size_t input) const { return node_.input(input) != nullptr; }
  bool wants(size_t output) const { return node_.output(output) != nullptr; }

  /// None if the rank is not known or the input is omitted.
  MaybeShape shape(size_t input) const;
  DataType type(size_t input) const;
  /// See FactStore::elements.
  const IntegerData* elements(size_t input) const;
  /// The elements if all are numbers.
  std::optional<std::vector<int64_t>> numbers(size_t input) const;
  /// Element of a constant with one element.
  std::optional<double> scalar(size_t input) const;

  void set_shape(size_t output, Shape shape);
  void set_type(size_t output, DataType type);
  /// Ignored if DATA is too large, or holds a number that the output's type cannot: sizes are up to 65,536.
  void set_integers(size_t output, IntegerData data);
  void set_same(size_t output, const Value& source);
  ValueFact& result(size_t output) { return results_[output]; }

  /// A size of which nothing is known.
  Dim fresh(size_t output, size_t axis) const;
  Shape fresh_shape(size_t output, size_t rank) const;
  /// Assumes that ONE and OTHER are equal; false if that may not be assumed.
  bool assume_equal(const Dim& one, const Dim& other) const;
  /// The node fails unless ONE and OTHER are equal.
  void require_equal(const Dim& one, const Dim& other) const { store_.demand(one, other, false, node_); }
  /// The node fails unless the axes of inputs ONE and OTHER, where both are given and have them, are equal.
  void require_equal(InputAxis one, InputAxis other) const;
  /// The node fails unless SIZE is that of AXIS, if the input is given and has such an axis.
  void require_size(const Dim& size, InputAxis axis) const;
  /// The node fails unless SIZE is that of AXIS, or the input has 1 there, if it is given and has such an axis.
  void require_size_or_one(const Dim& size, InputAxis axis) const;
  /// The node fails where SIZE is not at least 1.
  void require_positive(const Dim& size) const { store_.demand_positive(size, node_); }
  bool is_assumed_equal(const Dim& one, const Dim& other) const { return store_.is_assumed_equal(one, other); }
  /// max(DIM, 0); an expression of sizes is taken to be at least 0.
  Dim not_negative(Dim dim) const;
  /// The size of an axis over which A and B broadcast.
  Dim broadcast(const Dim& a, const Dim& b) const;
  Shape broadcast(const Shape& a, const Shape& b) const;

 private:
  const ValueFact* input_fact(size_t input) const;

  FactStore& store_;
  const Node& node_;
  int opset_ = 0;
  std::vector<ValueFact> results_;
};

/// Where an output's type comes from.
enum class ResultType { kOfInput0, kOfInput1, kBool, kInt64, kSetByRule };

struct ShapeRule {
  std::string_view op;
  void (*apply)(RuleContext&);
  ResultType type = ResultType::kOfInput0;
  bool pointwise = false;  ///< each element is a function of the inputs' elements there
};

std::span<const ShapeRule> elementwise_rules();
std::span<const ShapeRule> layout_rules();
std::span<const ShapeRule> indexing_rules();
std::span<const ShapeRule> generator_rules();
std::span<const ShapeRule> reduction_rules();
std::span<const ShapeRule> contraction_rules();
std::span<const ShapeRule> sequence_rules();
std::span<const ShapeRule> spatial_rules();
std::span<const ShapeRule> attention_rules();
std::span<const ShapeRule> contrib_rules();  ///< of com.microsoft
/// Of com.microsoft.nchwc: what ONNX Runtime makes of convolutions, over blocks of channels.
std::span<const ShapeRule> nchwc_rules();

/// The rule of operators whose output has the shape of their first input.
void like_input_0(RuleContext& context);
/// The shape of PARTS side by side along AXIS; nullopt where shapes are not known, or do not fit.
std::optional<Shape> joined_shape(std::span<const MaybeShape> parts, int64_t axis, RuleContext& context);
/// Applies the rule of the node's operator, if there is one.
void apply_shape_rule(RuleContext& context);
/// Null if there is none for NODE's operator.
const ShapeRule* shape_rule_of(const Node& node);
/// Contents of the outputs from those of the inputs, for operators that compute with or move small integer
/// tensors.
void apply_integer_rule(RuleContext& context);
/// Fills in what is open by ONNX's shape inference for the node.
void apply_schema_inference(RuleContext& context);
/// The value that a Loop starts VALUE with, an input of its body; null for all else.
const Value* initial_of_carried(const Value& value);
/// The value that a Scan starts VALUE with, an input of its body; null for all else.
const Value* initial_of_state(const Value& value);
/// What VALUE, an input of a Loop's body that hands it on as it is, holds in each iteration; null for all else.
const Value* same_in_all_iterations(FactStore& store, const Value& value);
/// What output number OUTPUT of NODE, a Loop, is handed on from, as it was; null if it is anything else.
const Value* handed_on_by(FactStore& store, const Node& node, size_t output);
/// A value that a Scan cuts along AXIS into what its body is given one after the other.
struct Scanned {
  const Value* whole = nullptr;
  int64_t axis = 0;
};
/// What the input VALUE of a Scan's body is a piece of; WHOLE is null for all else.
Scanned scanned_by(const Value& value);
/// If: the branch that its condition selects, or what both branches agree in.
void apply_if_rule(RuleContext& context);
/// What a Loop hands on from iteration to iteration as it is is what it began with; other values have the shape that iterations
/// leave as it is, and what it collects one more axis.
void apply_loop_rule(RuleContext& context);
/// A Scan's states have the shapes that they begin with, and what it collects one more axis.
void apply_scan_rule(RuleContext& context);
/// The branch of If node NODE that its condition selects; null if that is not known.
const Graph* selected_branch(FactStore& store, const Node& node);
/// Calls of model-local functions: the function's body with the call's inputs. False if NODE is no such call.
bool apply_function_rule(RuleContext& context);

}  // namespace attn_opt
