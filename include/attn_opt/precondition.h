// What must hold for a rewrite to be exact, and what of it a user accepts without proof.
#pragma once

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

namespace attn_opt {

/// Every id that a Precondition can have; docs/verification.md describes them.
inline constexpr std::array<std::string_view, 13> kPreconditionIds = {
    "scores-finite",    "scores-above-fill", "scores-within-clamp", "values-finite", "rows-keep-a-key",
    "exp-in-range",     "biases-small",      "factors-in-range",    "sizes-equal",   "sizes-not-empty",
    "lengths-in-range", "masks-binary",      "masks-not-negative"};
/// Two sizes are taken for equal.
inline constexpr std::string_view kSizesEqual = "sizes-equal";
/// Batch, heads, queries and keys are at least 1. What is proven of sizes rests on it, too.
inline constexpr std::string_view kSizesNotEmpty = "sizes-not-empty";

/// A mask of floats that is multiplied with scores holds 0 and 1 alone.
inline constexpr std::string_view kMasksBinary = "masks-binary";
/// One that is multiplied with what is divided by its sum holds nothing below 0.
inline constexpr std::string_view kMasksNotNegative = "masks-not-negative";

/// Something that must hold for the rewrite to be exact.
struct Precondition {
  std::string id;  ///< one of kPreconditionIds
  bool proven = false;
  std::string detail;  ///< what it is about, or why it is proven
  /// Where it does not hold, the model computes NaN and the rewrite a number; nothing else differs. Of those that are not
  /// proven.
  bool is_refinement = false;
};

/// The preconditions that may be assumed.
struct AcceptedAssumptions {
  bool all = true;
  std::set<std::string, std::less<>> ids = {};  ///< beside refinements, unless ALL
  bool refinements = true;                      ///< those that are refinements, and that no size is 0

  bool accepts(std::string_view id) const { return all || ids.contains(id) || (id == kSizesNotEmpty && refinements); }
  bool accepts(const Precondition& condition) const {
    return condition.proven || accepts(condition.id) || (condition.is_refinement && refinements);
  }
};

}  // namespace attn_opt
