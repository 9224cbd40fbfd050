// Mutants that change by how much keys are masked, at sites whose fills lie so deep that it does not matter.
#pragma once

#include <string>

#include "attn_opt/sdpa.h"

namespace attn_opt {

/// True if MUTATION changes the number of a fill, or of the mask that says it, by no more than to a half or the double, or that
/// of all keys that are kept, which softmax does not see, and all fills of SDPA hide a key with half of it left.
bool leaves_keys_hidden(const std::string& mutation, const Sdpa& sdpa);

}  // namespace attn_opt
