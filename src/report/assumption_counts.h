// How many fused sites depend on what is assumed.
#pragma once

#include <map>
#include <string>

#include "attn_opt/report.h"

namespace attn_opt {

struct AssumptionCounts {
  std::map<std::string, int, std::less<>> assumed;  ///< id -> sites; without refinements
  int refined = 0;                     ///< sites at which NaN may become a number
  int unverified = 0;                  ///< sites that were not run, or could not be
};

AssumptionCounts count_assumptions(const Report& report);
/// "depends on: scores-finite (12 sites), sizes-equal (1 site)"; empty if the fused sites depend on nothing.
std::string assumption_phrase(const AssumptionCounts& counts);

}  // namespace attn_opt
