// Which masks need not be written, because the node says them by itself (key_rules.h), or since they keep every key.
#pragma once

#include "src/emit/key_rules.h"

namespace attn_opt {

struct Causality {
  KeyRules rules;
  std::vector<const ScoreTerm*> masks;  ///< what is left for attn_mask
  std::string reading;                  ///< what was made of the masks, for people
};

/// What a way of writing assumes is among ACCEPTED.
Causality causality_of(std::vector<const ScoreTerm*> terms, const WritingPlan& plan, const AcceptedAssumptions& accepted,
                       Site& site);

}  // namespace attn_opt
