// The state behind Facts: three lazy levels, each computed node by node with a stack of its own.
//   fact      type, shape, contents of small integer tensors: from the facts of all inputs
//   constant  contents, where `foldable` says that they can be computed: runs the nodes of a constant cone
//   uniform   the one element that a whole tensor repeats
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "attn_opt/executor.h"
#include "attn_opt/facts.h"
#include "src/match/facts/fact_table.h"
#include "src/match/facts/loop_copies.h"
#include "src/match/facts/loop_shapes.h"
#include "src/match/sizes/size_proofs.h"

namespace attn_opt {

/// Elements of an integer tensor up to which its contents are held as expressions.
inline constexpr int64_t kMaxIntegers = 256;
/// Shapes of higher rank are not followed.
inline constexpr size_t kMaxRank = 64;

struct ValueFact {
  DataType type = onnx::TensorProto::UNDEFINED;
  std::optional<Shape> shape;
  std::optional<IntegerData> integers;
  const Value* same_as = nullptr;  ///< the value it is a copy of, if that is known
  bool foldable = false;           ///< its contents can be computed from the model alone
};

inline MaybeShape shape_of(const ValueFact& fact) { return fact.shape ? MaybeShape(*fact.shape) : nullptr; }

/// What a value was found to be a copy of (canonical.h), while PRODUCER made it.
struct CopyNote {
  Value* source = nullptr;
  const Node* producer = nullptr;
};

/// What a node asks of two sizes: that they are equal or, if it BROADCASTS, that one of them may be 1.
struct SizeDemand {
  Dim one, other;
  bool broadcasts = false;
  const Node* node = nullptr;
};

/// What a node asks of a size: that it is at least 1.
struct PositiveDemand {
  Dim size;
  const Node* node = nullptr;
};

/// The number that TENSOR, of one element, holds; nullopt if it is null, has other elements or none that is a number.
std::optional<double> number_in(const Tensor* tensor);

/// "ONE = OTHER".
std::string equation_text(const Dim& one, const Dim& other);

/// Round trips within round trips that canonical() looks for.
inline constexpr int kMaxRoundTripNesting = 2;
using CopyNotes = FactTable<std::array<CopyNote, kMaxRoundTripNesting + 2>>;  // by depth of nesting

class RuleContext;

struct Scanned;
class FactStore {
 public:
  FactStore(ModelGraph& view, const TensorStore& tensors) : view_(view), tensors_(tensors) {}

  /// Computes what VALUE's fact stands on, and the fact.
  const ValueFact& fact(const Value& value) {
    const ValueFact* known = facts_.find(value);
    return known ? *known : computed_from_inputs(value);
  }
  /// The fact of a value whose own producer has been computed; an empty one otherwise.
  const ValueFact& computed(const Value& value) {
    const ValueFact* known = facts_.find(value);
    return known ? *known : leaf_or_unknown(value);
  }
  LoopCopies& loop_copies() { return loop_copies_; }
  /// The shapes of what LOOP, a Loop, carries, at the beginning of each iteration.
  const CarriedShapes& carried_by(const Node& loop);
  /// What is not known of EXISTING is that of MADE.
  void take_over(const Value& existing, const Value& made);
  /// What is known of its elements, with an unknown for each other one; null if they are too many or not
  /// integers.
  const IntegerData* elements(const Value& value);

  /// Contents of VALUE; null if it is not foldable or the executor cannot run what makes it.
  const Tensor* constant(const Value& value);
  /// A tensor of rank 0.
  const Tensor* uniform(const Value& value) {
    const Tensor* known = uniforms_.find(value);
    const Tensor& element = known ? *known : uniform_from_inputs(value);
    return element.has_value() ? &element : nullptr;
  }

  void assume_equal(const Dim& one, const Dim& other, const Node& node);
  /// Nothing is assumed from now on but EQUATIONS, which outlive the store; what nodes demand is kept.
  void assume_only(const std::set<std::string>& equations) { proven_ = &equations; }
  bool may_assume() const { return !proven_; }
  /// Sizes that the model declares are called as NAMES say from now on, which outlive the store.
  void rename(const EqualNames& names) { names_ = &names; }
  /// True unless ONE = OTHER is to be assumed and may not be.
  bool may_assume(const Dim& one, const Dim& other) const { return !proven_ || one == other || is_proven(one, other); }
  /// True if ONE = OTHER is one of the equations given.
  bool is_proven(const Dim& one, const Dim& other) const {
    return proven_ && (proven_->contains(equation_text(one, other)) || proven_->contains(equation_text(other, one)));
  }
  void demand(const Dim& one, const Dim& other, bool broadcasts, const Node& node);
  void demand_positive(const Dim& size, const Node& node);
  /// Those of one graph once.
  const std::vector<SizeDemand>& demands() const { return demands_; }
  const std::vector<PositiveDemand>& positive_demands() const { return positive_demands_; }
  /// True if just that has been assumed so far.
  bool is_assumed_equal(const Dim& one, const Dim& other) const;
  const std::vector<SizeAssumption>& assumptions() const { return assumptions_; }
  std::vector<const SizeAssumption*> assumptions_about(const std::set<std::string>& symbols) const;

  /// Shapes that the model's inputs declare.
  const std::vector<Shape>& input_shapes();
  /// Versions of what NODE, and the nodes of its bodies, are of.
  const Opsets& opsets(const Node& node);
  const TensorStore& tensors() const { return tensors_; }
  ModelGraph& view() const { return view_; }
  CopyNotes& copies() { return copies_; }
  /// VALUE's name, with a number if another value of the model has the same.
  const std::string& hint(const Value& value);
  /// The body of the model-local function that NODE calls; null if it calls none.
  const Graph* function_called(const Node& node);
  /// Sets the results of a call from the facts of BODY, unless calls are nested too deep or too many.
  void infer_call(RuleContext& context, const Graph& body);

 private:
  /// Gives an input of the function whose body this store describes what CALLER knows of ARGUMENT, which may
  /// be null.
  void bind(const Value& parameter, FactStore& caller, const Value* argument);
  std::vector<const Value*> inputs_of(const Value& value, int stage);
  std::vector<const Value*> constant_inputs(const Value& value);
  const ValueFact& computed_from_inputs(const Value& value);
  const ValueFact& leaf_or_unknown(const Value& value);
  void compute_or_leave_open(const Node& node);
  void compute(const Node& node);
  void complete(const Value& value, ValueFact& fact);
  ValueFact leaf(const Value& value);
  void enter(FactStore& around, const Value& named);
  void enter_loop(const Node& loop, FactStore& around, const CarriedShapes& taken);
  void enter_carried(const Value& value, const Value& initial, ValueFact& fact);
  void open_numbers_unlike(const ValueFact& initial, const std::string& hint, ValueFact& fact);
  void enter_kept(const Value& initial, ValueFact& fact);
  void enter_piece(const Scanned& scanned, ValueFact& fact);
  Shape declared_dims(const Value& value, const onnx::TensorShapeProto& shape);
  const std::set<std::string>& open_sizes();
  bool is_of_named_sizes(const Dim& dim);
  bool is_open_size_of_input(const Value& value, const Dim& dim);
  void merge_declared(const Value& value, ValueFact& fact);
  void fold(const Value& value);
  Tensor folded(const Value& value);
  const Tensor& uniform_from_inputs(const Value& value);
  std::vector<const Value*> uniform_inputs(const Value& value, int stage);
  void find_uniform(const Value& value);
  bool is_zero_product(const Node& node);
  bool is_cast_of_booleans(const Value& value);
  bool is_zero(const Value& value);
  Tensor uniform_result(const Node& node);

  ModelGraph& view_;
  const TensorStore& tensors_;
  FactTable<ValueFact> facts_;
  FactTable<Tensor> constants_;  ///< without value: not constant
  FactTable<Tensor> uniforms_;
  CopyNotes copies_;
  std::unordered_map<const Graph*, Opsets> opsets_;
  std::unordered_map<const Value*, std::string> hints_;
  std::unordered_map<std::string, int> hint_counts_;
  std::unordered_map<std::string, size_t> assumed_;  ///< indices of ASSUMPTIONS_
  std::vector<SizeAssumption> assumptions_;
  std::unordered_map<std::string, std::vector<size_t>> assumptions_of_symbol_;  ///< indices
  const std::set<std::string>* proven_ = nullptr;                               ///< null: everything may be assumed
  std::vector<SizeDemand> demands_;
  std::vector<PositiveDemand> positive_demands_;
  std::set<std::pair<const Graph*, std::string>> demanded_;
  const EqualNames* names_ = nullptr;
  std::optional<std::vector<Shape>> input_shapes_;
  std::optional<std::set<std::string>> open_sizes_;
  LoopCopies loop_copies_;
  std::unordered_map<const Node*, CarriedShapes> carried_;
  int64_t constant_elements_ = 0;
  int64_t integer_elements_ = 0;
  bool functions_read_ = false;
  std::unordered_map<std::string, const Graph*> functions_;
  // Of the store for a call's body:
  int depth_ = 0;
  std::string hint_prefix_;
  int64_t own_nodes_in_calls_ = 0;
  int64_t* nodes_in_calls_ = nullptr;  ///< the outermost store's count
};

struct Facts::Impl {
  Impl(ModelGraph& view, const TensorStore& tensors)
      : names(equal_names(view, tensors)), store(view, tensors), proofs(view, tensors, names) {
    store.rename(names);
  }
  const EqualNames names;
  FactStore store;
  SizeProofs proofs;
};

/// The number of elements; nullopt if a dim is no number, negative, or the product overflows.
std::optional<int64_t> element_count(const Shape& shape);
bool is_integer(DataType type);
/// DATA as a tensor if all its values are numbers that TYPE can hold.
Tensor tensor_of(const IntegerData& data, DataType type);
/// An integer or bool tensor as numbers.
std::optional<IntegerData> integers_of(const Tensor& tensor);
/// The Constant node's tensor; nullopt for strings and sparse tensors.
std::optional<Tensor> constant_attribute(const Node& node, const TensorStore& tensors);

}  // namespace attn_opt
