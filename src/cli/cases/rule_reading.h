// What the replacement of a rule says of a pattern at first sight.
#pragma once

#include <set>
#include <string>

#include "src/cli/cases/rule_part.h"

namespace attn_opt {

struct RuleReading {
  enum class MaskUse {
    kAdded,
    kKeeps,  ///< true where a score stays
    kDrops,  ///< true where it does not
  };
  Value *q = nullptr, *k = nullptr, *v = nullptr;
  bool k_is_turned = false;  ///< K has its features in front of its keys
  double scale = 1;
  Value* mask = nullptr;
  MaskUse mask_use = MaskUse::kAdded;
  std::set<std::string> left_out;  ///< operators of PART of which nothing is said
};

/// Follows the scores of PART from its anchor up.
RuleReading read_part(const RulePart& part, Facts& facts);

}  // namespace attn_opt
