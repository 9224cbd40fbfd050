// Contents for the inputs of a site: what a mask may hold at worst is drawn on purpose.
#pragma once

#include <map>

#include "src/verify/sizes.h"

namespace attn_opt {

/// What an input is to the attention, which decides how it is drawn.
enum class InputRole {
  kOther,
  kQuery,
  kKey,
  kBias,         ///< added to the scores
  kKeep,         ///< true where a key is kept
  kDrop,         ///< true where a key is masked
  kLength,       ///< number of keys that are no padding
  kTensorScale,  ///< a factor of the scores
};

/// How masks are drawn. Rows are those of a mask: it may have one for each query or one for all.
enum class DrawKind {
  kRandom,
  kAllKept,
  kMixed,      ///< each entry of a bias 0, -1e4, lowest, -inf or normal; in one row only fills
  kEmptyRow,   ///< one row without a key, one for each term that it alone empties, one that they empty in turn
  kLowestRow,  ///< one row of a bias all lowest, one of the lowest and what lies a quarter above it
  kCausal,     ///< a bias that is the same for all queries: the lowest and what lies a quarter above it
  kFar,        ///< each row of a bias normal around a number of its own, 500 or -1e4 among them
  kLarge,      ///< queries thirty times as large
  kAllMasked,  ///< no query keeps a key, and none is a number; other truths are the same for all keys
  kNotFinite,  ///< one query and the last keys are no numbers: a row is one only where that is hidden
  kWide,       ///< of what is no attention: rows of zeros, and of numbers from tiny to large
  kNoNumbers,  ///< of what is no attention: some elements NaN, some infinite
  kScattered,  ///< of what is no attention: such numbers side by side, and others around those that the site bounds them with
};

std::string_view name_of(DrawKind kind);

/// Kinds worth drawing: those of masks only if there is something that can mask.
std::vector<DrawKind> draw_kinds(const CutSite& site, const Sdpa& sdpa);

/// True if INPUT is a mask of floats, of which it is said what it is taken for.
bool is_given_mask(const SiteInput& input, const Sdpa& sdpa);
InputRole role_of(const SiteInput& input, const Sdpa& sdpa);

struct DrawRequest {
  const CutSite& site;
  const Sdpa& sdpa;
  const SizeAssignment& sizes;
  DrawKind kind;
  uint64_t seed;
  size_t memory_limit;
};

/// Contents of every input, by name. Errors: kInvalidInput (a size without a number, or negative), kLimit, kUnsupported
/// (an element type that cannot be drawn).
Expected<Feeds> draw_inputs(const DrawRequest& request);

}  // namespace attn_opt
