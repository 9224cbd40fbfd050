// Shows that an Edit changes no numbers: runs what it replaces and what it writes on the same inputs.
//
// Both sides are cut at the values that the new nodes read, and become two small models with the same inputs. Two
// judgements, both must hold: (a) in double, with the scale in double: relative difference at most 1e-6; (b) in the
// model's own type as written: same NaN and Inf, and errors within a bound that follows from the row's scores.
#pragma once

#include <memory>

#include "attn_opt/internal/emit.h"
#include "attn_opt/pattern.h"
#include "attn_opt/verification.h"

namespace attn_opt {

/// Verifies the sites of one model.
class Verifier {
 public:
  Verifier(const MatchContext& context, const TensorStore& tensors, const VerifyOptions& options);
  ~Verifier();

  Verification verify(const Emission& emission, const Sdpa& sdpa);
  /// An edit of no attention: what it takes over, whatever that is, against what it makes of the same inputs.
  Verification verify(const Emission& emission);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attn_opt
