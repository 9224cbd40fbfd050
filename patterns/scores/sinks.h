// Sinks: columns beside the scores that take part in the softmax and are cut off behind it (gpt-oss).
//
//   scores (…, L, S) ─┐
//                     Concat ─ Softmax ─ Slice (…, L, S) ─ product with V
//   sinks (…, L, W) ──┘
//
// To the operator they are W more keys and values of zeros: the keys give scores of 0, to which the mask adds the sinks, and
// the values nothing.
#pragma once

#include <optional>

#include "attn_opt/pattern.h"

namespace attn_opt {

/// Where sinks stand beside the scores.
struct SinkColumns {
  int64_t count = 0;
  bool in_front = false;
};

/// Sinks and what was done to them and the scores alike.
struct JoinedSinks {
  Value* value = nullptr;
  SinkColumns columns;
  double scale = 1;
  size_t terms = 0;  ///< how many of the terms, from the outermost on, were laid over both
  Shape frame = {};  ///< of the scores that they stand beside
};

/// Makes SDPA, of the scores beside SINKS, that of both: in Q K^T, in V and in all that is added to the scores alone. READER
/// stands below them. Miss "scores.sinks".
Matched<void> add_sinks(const JoinedSinks& sinks, Sdpa& sdpa, Node& reader, MatchContext& context);

/// Enters what SDPA with SINKS needs, once its preconditions are known: no row is without a key where nothing masks the sinks.
void assume_of_sinks(const JoinedSinks& sinks, Sdpa& sdpa, MatchContext& context);

}  // namespace attn_opt
