// What is known of a model's values without running it: types, symbolic shapes, contents of small integer
// tensors, constants. Computed on demand, one node at a time, each node once; never over the whole model at
// once.
//
//   Facts facts(view, *model.tensors);
//   if (const MaybeShape shape = facts.shape(*value)) ...
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "attn_opt/graph.h"
#include "attn_opt/model.h"
#include "attn_opt/shape.h"
#include "attn_opt/tensor.h"

namespace attn_opt {

/// Contents of an integer (or bool) tensor as symbolic expressions, row-major. What is not known of an
/// element is an unknown of the expression, ?NAME[I] for element I of the value NAME, which may be negative.
struct IntegerData {
  std::vector<int64_t> dims;
  DimList values;
};

/// Two sizes that are taken for equal though that is not proven, at NODES. A slice or range taken to lie within bounds reads
/// {n, min(n, extent)} or {n, max(n, 0)}.
struct SizeAssumption {
  Dim one, other;
  std::vector<const Node*> nodes;
};

/// What is known of the values of one view, found out when it is first asked for.
class Facts {
 public:
  /// VIEW and TENSORS must outlive the facts. Unless they may ASSUME that sizes are equal, what two that broadcast come to is a
  /// size of its own: less is recognised, for every run.
  Facts(ModelGraph& view, const TensorStore& tensors, bool assume = true);
  ~Facts();

  /// False if nothing is assumed.
  bool may_assume() const;
  /// None if the rank is not known.
  MaybeShape shape(const Value& value);
  /// UNDEFINED if not known.
  DataType type(const Value& value);
  /// Contents of a small integer tensor (at most 256 elements) as expressions; null if nothing is known of
  /// it.
  const IntegerData* integers(const Value& value);
  /// The same of each run that comes to its end, whatever is assumed elsewhere; until more is asked.
  const IntegerData* integers_of_each_run(const Value& value);
  /// As shape(), of each run that comes to its end, whatever is assumed elsewhere.
  MaybeShape shape_of_each_run(const Value& value);
  /// Contents of a value that is an initializer or computed from such alone, up to kMaxConstantElements; null
  /// otherwise.
  const Tensor* constant(const Value& value);
  /// The value that every element has, whatever the shape (a constant, ConstantOfShape, Expand of a scalar,
  /// ...).
  std::optional<double> uniform(const Value& value);
  /// Element of a constant that has exactly one (rank 0, [1], [1,1], ...).
  std::optional<double> scalar(const Value& value);
  /// Every assumption made so far.
  const std::vector<SizeAssumption>& assumptions() const;
  /// Those that say something of one of SYMBOLS (names of atoms), in the order in which they were made.
  std::vector<const SizeAssumption*> assumptions_about(const std::set<std::string>& symbols) const;
  /// True if ASSUMPTION holds in each run of the model in which no axis of the values READ, all of one graph, has the size 0.
  bool proves(const SizeAssumption& assumption, std::span<Value* const> read);

  /// EXISTING is made as MADE is from now on: where its own type or shape is not known, it is that of MADE.
  void take_over(const Value& existing, const Value& made);

  static constexpr int64_t kMaxConstantElements = 1 << 16;

 private:
  friend Value& canonical(Value& value, Facts& facts);  // what it finds is kept here
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attn_opt
