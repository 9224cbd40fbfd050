// Which masks the node's is_causal says by itself.
//
// It keeps key j of query i if j <= i + P, where P is the length of the past that the node takes. In portable form a node
// with a past has as many new keys as queries.
#pragma once

#include "src/emit/plan.h"
#include "src/emit/site.h"

namespace attn_opt {

struct Causality {
  bool is_causal = false;
  std::vector<const ScoreTerm*> masks;  ///< what is left for attn_mask
  std::string reading;                  ///< what was made of the masks, for people
};

/// STRICT: only what adds no assumption.
Causality causality_of(std::vector<const ScoreTerm*> terms, const WritingPlan& plan, bool strict, Site& site);

}  // namespace attn_opt
