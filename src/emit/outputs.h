// What the node's outputs stand for: existing values of the model that it makes from now on.
#pragma once

#include "src/emit/operands.h"
#include "src/emit/plan.h"

namespace attn_opt {

/// Which further outputs of the node are of use.
struct FurtherOutputs {
  Value* present_key = nullptr;  ///< existing values that the presents are
  Value* present_value = nullptr;
  int qk_matmul_output_mode = 0;
  const OutputView* scores = nullptr;  ///< or probabilities: what they are read as
  bool wants_scores() const { return scores != nullptr; }
};

/// Which outputs beside Y are tried: a mask that is computed from the sizes of a present cannot be read by what makes it, and
/// scores may be read by nothing but what goes.
enum class Further { kAll, kPresents, kScores, kNone };

FurtherOutputs further_outputs(const WritingPlan& plan, Further wanted, Site& site);

/// Hides the sizes of Q from shape inference where it takes the number of keys of qk_matmul_output for another: ONNX Runtime
/// has one buffer for values of one inferred shape, and fails where they are of two sizes in a run.
void hide_query_sizes(const WritingPlan& plan, const FurtherOutputs& further, Operands& operands, Site& site);

/// Lets Y, and ATTENTION's further outputs, take over what is read of the old nodes. Miss "emit.shape".
Matched<void> take_over_outputs(const WritingPlan& plan, const FurtherOutputs& further, const Node& attention, Value& y,
                                Site& site);

/// EXISTING is made by MADE's producer from commit() on; by an Identity behind it, if that makes another one already.
void take_over_once(Value& existing, Value& made, GraphBuilder& build);

}  // namespace attn_opt
