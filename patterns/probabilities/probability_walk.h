// The probabilities: from the softmax's result downward to the product with V.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attn_opt/miss.h"
#include "attn_opt/pattern.h"
#include "patterns/probabilities/linear_steps.h"
#include "patterns/probabilities/row_guard.h"
#include "patterns/products/cut_columns.h"
#include "patterns/scores/score_split.h"
#include "patterns/softmax/softmax_anchor.h"

namespace attn_opt {

/// A value on the way that others than the next step read, and what has become of the probabilities where it stands.
struct EscapingValue {
  Value* value = nullptr;
  bool transposed = false;         ///< keys by queries
  size_t steps = 0;                ///< that stand above it
  bool guarded = false;            ///< stands behind the guard
  std::vector<int64_t> perm = {};  ///< that of the walk, so far
};

/// PART was picked along AXIS of the softmax's result.
struct PickedRows {
  Value* part = nullptr;
  size_t axis = 0;
};

struct ProbabilityWalk {
  Node* product = nullptr;         ///< the MatMul or Einsum with V
  std::vector<Node*> products;     ///< all that are read as such, first to last: each is an attention of the same scores
  Value* probabilities = nullptr;  ///< what that reads
  Value* summed = nullptr;         ///< what the model makes of the parts it has PRODUCT in; null: PRODUCT makes it
  bool transposed = false;         ///< PROBABILITIES is keys by queries
  std::vector<int64_t> perm;       ///< of a Transpose of all axes, behind which all else stands; empty if there is none
  bool regrouped = false;
  std::optional<ScoreSplit> row_split;   ///< rows that are regrouped, first of all, to those of the product
  std::optional<RowGuard> guard;         ///< what makes rows without a key 0 on the way
  std::optional<LinearStep> guard_step;  ///< the same as a step, if it is one
  std::vector<int64_t> guard_perm;       ///< PERM where the guard stands
  bool guard_transposed = false;         ///< the guard is of keys by queries that were queries by keys, or the reverse
  std::vector<EscapingValue> escaping;   ///< what others read too, from the softmax on
  std::vector<PickedRows> picked;        ///< first of all but casts, of what nothing else reads
  std::vector<LinearStep> steps;
  bool drops_values = false;        ///< of V, which the model multiplies with 0
  double values_factor = 1;         ///< what V is multiplied with at most, or summed up as many times, beside STEPS
  bool is_multiple = false;         ///< the first of STEPS is the number that the softmax's result is times the softmax
  std::vector<Value*> way;          ///< from the softmax's result to PROBABILITIES: what each step and layout leaves
  std::optional<CutColumns> sinks;  ///< were cut off on the way
  std::vector<std::string> peeled;

  /// True if where the keys of a step lie depends on whether it stands above a swap.
  bool has_turned_steps() const { return transposed && !steps.empty(); }
  /// What others read is kept by the last site of a softmax alone: at the ones before it, the softmax is still there for them.
  bool is_last_product() const { return product == products.back(); }
  /// The model's node that makes Y, or what V's product is added up to.
  Node* last_node() const { return summed ? summed->producer : product; }
};

/// Walks from the result of SOFTMAX to WANTED, or to the first product if that is null. PARTS_AXES: to one of any axes, as soon
/// as nothing but layout operators is left (parted_axes.h). Misses: "probabilities.*"; "not-attention" if no product is
/// reached.
Matched<ProbabilityWalk> walk_probabilities(const SoftmaxSite& softmax, const Node* wanted, MatchContext& context,
                                            bool parts_axes = false);

}  // namespace attn_opt
