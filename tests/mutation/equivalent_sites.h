// Sites at which it does not matter by how much keys are masked, or what the scores are.
#pragma once

#include <string>

#include "attn_opt/internal/sdpa.h"

namespace attn_opt {

/// True if MUTATION changes the number of a fill, or of the mask that says it, by no more than to a half or the double, or that
/// of all keys that are kept, which softmax does not see, and all fills of SDPA hide a key with half of it left.
bool leaves_keys_hidden(const std::string& mutation, const Sdpa& sdpa);

/// True if MUTATION changes nothing but rows whose scores leave the range of exp(), and SDPA assumes that there are none.
bool changes_rows_beyond_exp(const std::string& mutation, const Sdpa& sdpa);

/// True if MUTATION leaves out that scores are finite, which SDPA, whose factors become those of Q or K, assumes of nothing but
/// scores that leave their range before they are multiplied: none that is drawn does.
bool assumes_scores_in_range(const std::string& mutation, const Sdpa& sdpa);

/// True if SDPA has one key, whose weight is 1 or no number whatever the score.
bool has_one_key(const Sdpa& sdpa);

}  // namespace attn_opt
