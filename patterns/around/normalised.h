// What divides by a root mean square: RMS and layer normalisations.
//
//   x ─┬─ (Cast) ─┬───────────────────────────────────────────── Mul ─ (Cast) ─ (Mul by the weight) ─ (Add of the bias) ─ y
//      │          └─ x^2 ─ ReduceMean ─ Add eps ─ 1 / sqrt ───────┘
//
// x^2 is Pow or Mul; 1 / sqrt is Reciprocal(Sqrt), 1 / Sqrt, Pow(-0.5), or a Div by Sqrt or Pow(0.5) in the place of the Mul.
#pragma once

#include "attn_opt/matcher.h"
#include "attn_opt/rewrite.h"

namespace attn_opt {

/// Fits what a Mul or Div makes of X, which is captured, and of its root mean square over the last axis.
Matcher normalised(Value** x, double* epsilon);

/// Fits a value less its mean over the last axis.
Matcher centred(Value** x);

/// Where a normalisation begins and ends.
struct NormEnds {
  Value* from = nullptr;    ///< x, in front of a cast to float32 that is undone behind it
  Value* y = nullptr;       ///< the last value that belongs to it
  Value* weight = nullptr;  ///< of rank 1, as long as the last axis; null: none
  Value* bias = nullptr;    ///< the same; only behind a weight
  Node* place = nullptr;    ///< what makes y
};

/// The ends of what makes NORMALISED of X, whose last axis is of SIZE. A node belongs to it if nothing else reads what is in
/// front.
NormEnds ends_of(Value& x, Value& normalised, const Dim& size, bool with_bias, Facts& facts);

/// Enters ENDS and EPSILON into a match; where there is no weight also the number of ones that stand for it. Miss: "norm.size",
/// at NODE.
Matched<void> enter(const NormEnds& ends, double epsilon, const Dim& size, const Node& node, Facts& facts, RewriteMatch& match);

/// The weight of MATCH, or ones.
Value* weight_of(const RewriteMatch& match, GraphBuilder& build);

/// The attributes that both operators have.
GraphBuilder::Attributes norm_attributes(const RewriteMatch& match);

}  // namespace attn_opt
