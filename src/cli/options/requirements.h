// What a run must have done for its model to be written.
#pragma once

#include <memory>
#include <optional>

#include "attn_opt/report.h"

namespace attn_opt {

class Baseline;

struct Requirements {
  std::optional<int> fused = std::nullopt;  ///< so many sites at least
  bool all_fused = false;
  bool allow_none = false;                             ///< all_fused is met where there is no attention at all
  bool fail_on_mismatch = false;                       ///< no site whose numbers differ
  bool check = false;                                  ///< nothing that could be fused
  std::shared_ptr<const Baseline> baseline = nullptr;  ///< no site lost that it says was fused
};

/// Errors: kMismatch, kRequirement.
Status check_requirements(const Requirements& required, const Report& report);

}  // namespace attn_opt
