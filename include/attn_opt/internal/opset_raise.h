// Raises a model to the opset that Attention needs, node by node, keeping everything else of the model as it is.
//
// A node whose operator did not change, or only gained types or attributes with defaults, is bumped; any other is
// converted alone, by a rule of ours or by ONNX's version converter, and accepted only if it equals the original on the
// executor (a conversion that only spells an attribute differently also where the executor cannot run the operator). The
// whole raise is planned before anything is changed.
#pragma once

#include <memory>
#include <string>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"
#include "attn_opt/miss.h"
#include "attn_opt/model.h"

namespace attn_opt {

/// What raising a model will change; nothing is changed before apply().
class RaisePlan {
 public:
  RaisePlan();
  RaisePlan(RaisePlan&&) noexcept;
  RaisePlan& operator=(RaisePlan&&) noexcept;
  ~RaisePlan();

  int converted() const;  ///< nodes that are not merely bumped
  /// Converts the nodes that are still in the model, sets the opset of the model and its functions, and raises
  /// ir_version to what the opset asks for. Nodes added since the plan was made are of the new opset already.
  void apply(ModelGraph& view);

 private:
  friend Matched<RaisePlan> plan_raise(ModelGraph& view, Facts& facts, int opset, bool rows_keep_a_key);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Plans to raise VIEW's model from its opset to OPSET (nothing to do if it is there or above). Attention nodes whose
/// mask may be for fewer keys than there are get it expanded. ROWS_KEEP_A_KEY: no mask of such a node hides all keys of a row,
/// which versions of the operator take otherwise. Miss "opset.raise" names the node in the way.
Matched<RaisePlan> plan_raise(ModelGraph& view, Facts& facts, int opset, bool rows_keep_a_key = true);

}  // namespace attn_opt
