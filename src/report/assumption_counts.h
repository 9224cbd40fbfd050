// How many fused sites depend on what is assumed.
#pragma once

#include <map>
#include <string>

#include "attn_opt/report.h"

namespace attn_opt {

struct AssumptionCounts {
  std::map<std::string, int, std::less<>> assumed;  ///< id -> sites; without refinements
  int refined = 0;                                  ///< sites at which NaN may become a number
  int unverified = 0;                               ///< sites that were not run, or could not be
};

AssumptionCounts count_assumptions(const Report& report);
/// Of the FUSED sites how many are verified and what they assume, in words: "12 of 12 verified; 12 assume that each row keeps a
/// key (explain says why, --strict refuses)"; empty if none is fused.
std::string assurance_phrase(int fused, const AssumptionCounts& counts);

}  // namespace attn_opt
