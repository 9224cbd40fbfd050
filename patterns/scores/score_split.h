// Scores whose queries and keys are told apart into several axes for a while.
//
//   (…, L, S)  ─ Reshape ─  (…, h, w, h', w')  ─ Add rel_h (…, h, w, h', 1) ─ Add rel_w (…, h, w, 1, w')  ─ Reshape ─  (…, L,
//   S)
//
// as the decomposed relative positions of images are added (SAM, ViTDet). What was laid over the scores in between becomes
// terms of (…, L, S): biases are added up, all are reshaped in unplaced nodes.
//
// Rows alone may also be regrouped until behind the softmax, which takes each row by itself: (B, L*H, S) as (B, L, H, S), or
// (…, S) as (-1, S).
#pragma once

#include <optional>

#include "attn_opt/miss.h"
#include "attn_opt/pattern.h"
#include "patterns/scores/sinks.h"

namespace attn_opt {

struct ScoreSplit {
  Node* merges =
      nullptr;  ///< the Reshape to (…, L, S), whose leading axes may be others than those of MERGED; null: behind the softmax
  Value* source = nullptr;  ///< what is reshaped, of shape PARTS
  Shape merged, parts;      ///< (…, L, S) and above it, with the same leading axes
  size_t rows = 0;  ///< how many axes of PARTS are L, behind the leading ones; those that follow are S. 0: rows are regrouped
  size_t first_term = 0;  ///< of the terms that were met since

  /// True if the keys are one axis as they were.
  bool keeps_keys() const { return !merges; }
  /// True if MERGES makes other leading axes of those of PARTS as well.
  bool regroups(Facts& facts) const;
  /// VALUE, or what it was regrouped from, where that is (…, L, S) again, whatever its leading axes; null if nothing is.
  Value* whole_above(Value& value, Facts& facts) const;
  /// The same of (…, S, 1), where that is (…, 1, S) here.
  Value* column_above(Value& value, Facts& facts) const;
};

/// Of scores (…, L, S) of shape MERGED whose rows are regrouped to PARTS until behind the softmax.
ScoreSplit rows_regrouped(Shape parts, Shape merged);

/// The split that NODE, a Reshape below it, ends; nullopt if its input's axes do not make up queries and keys.
std::optional<ScoreSplit> split_below(Node& node, Facts& facts);

/// Makes TERMS, and SINKS beside which nothing else is laid over, of SPLIT such of the scores that NODE splits. Misses:
/// "scores.reshape", "scores.sinks".
Matched<void> merge_terms(const ScoreSplit& split, std::vector<ScoreTerm>& terms, std::optional<JoinedSinks>& sinks, Node& node,
                          MatchContext& context);

}  // namespace attn_opt
