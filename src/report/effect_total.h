// The effect of a whole run: formulas of the model's symbolic sizes, and their values for one choice of sizes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "attn_opt/report.h"

namespace attn_opt {

struct EffectTotal {
  Dim score_bytes;
  int nodes_removed = 0, nodes_added = 0;
  /// What each symbol is taken for: 1 for those of a batch, else 1024.
  std::map<std::string, int64_t> sizes;
  std::optional<int64_t> example_score_bytes;  ///< none if it passes 64 bits
};

/// Of all fused sites of REPORT.
EffectTotal total_effect(const Report& report);
/// SCORE_BYTES under SIZES.
std::optional<int64_t> example_bytes(const Dim& score_bytes, const std::map<std::string, int64_t>& sizes);

}  // namespace attn_opt
