// Which sizes that facts assume equal are equal in every run of the model.
//
// The facts are found a second time without any assumption, and with them what nodes ask of their inputs: sizes that broadcast,
// or that a product or a Concat needs equal. A node that the model cannot do without fails where that does not hold.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>

#include "attn_opt/facts.h"
#include "src/match/needed_nodes.h"
#include "src/match/sizes/equal_names.h"

namespace attn_opt {

class FactStore;

class SizeProofs {
 public:
  /// VIEW, TENSORS and NAMES must outlive the proofs.
  SizeProofs(ModelGraph& view, const TensorStore& tensors, const EqualNames& names);
  ~SizeProofs();

  /// True if ASSUMPTION holds in each run that comes to the end of the graph of READ, and in which no axis of READ's values has
  /// the size 0.
  bool holds(const SizeAssumption& assumption, std::span<Value* const> read);
  /// Contents of VALUE by what is proven, until something else is asked; null if nothing is known of them.
  const IntegerData* integers(const Value& value);
  /// The shape of VALUE by what is proven; none if its rank is not known.
  MaybeShape shape(const Value& value);

 private:
  void start();
  bool enter(const SizeAssumption& assumption);
  bool holds_now(const SizeAssumption& assumption, std::span<Value* const> read);
  void visit_consumers(const Node& node);
  bool follows_from_demands(const SizeAssumption& assumption, const Graph& graph, const std::set<std::string>& positive);
  void enter_demanded(std::span<Value* const> read, std::set<std::string>& positive);

  ModelGraph& view_;
  const TensorStore& tensors_;
  const EqualNames& names_;
  std::set<std::string> proven_;      ///< equations
  std::unique_ptr<FactStore> store_;  ///< goes by what is proven alone
  bool is_stale_ = false;             ///< it says less than what is proven by now
  std::set<const Node*> visited_;
  NeededNodes needed_;
};

}  // namespace attn_opt
