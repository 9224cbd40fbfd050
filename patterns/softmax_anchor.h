// Where a softmax is: the operator, or written out.
#pragma once

#include <optional>

#include "attn_opt/miss.h"
#include "attn_opt/pattern.h"

namespace attn_opt {

struct SoftmaxSite {
  Value* input = nullptr;
  Value* output = nullptr;
};

/// Cheap: true for Softmax, and for a Div or Mul that may end a written-out one.
bool may_be_softmax(const Node& node);

/// The softmax that NODE is or ends, over whatever axis; nullopt if it is none.
///
///   Softmax(x)      Exp(x - ReduceMax(x)) / ReduceSum(Exp(...))      the same times Reciprocal      without the maximum
std::optional<SoftmaxSite> softmax_at(Node& node, Facts& facts);

/// Misses: "softmax.axis", "softmax.unknown-rank".
Matched<void> check_softmax_axis(const Node& node, MatchContext& context);

}  // namespace attn_opt
