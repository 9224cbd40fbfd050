// What must hold for biases that are added to scores otherwise than the model adds them.
#pragma once

#include <optional>

#include "attn_opt/pattern.h"

namespace attn_opt {

/// A bias at or below this hides its key whatever it was rounded by.
inline constexpr double kHiding = -1000;

/// True if TERM hides scores with a number that leaves a trace of them: in some runtimes, which compute with float16 in float,
/// or where the sum is rounded otherwise. Beside -1e7 a float has no digit behind the point left.
bool is_shallow_bias(const ScoreTerm& term, const Sdpa& sdpa, Facts& facts);

/// A bias of SDPA that may be large where it keeps a key: in halves 32, else where a float rounds it by 1e-4; null if there is
/// none.
const ScoreTerm* large_bias(const Sdpa& sdpa, Facts& facts);

/// The precondition "biases-small"; nullopt if no bias is rounded otherwise than by the model, in whatever runtime.
std::optional<Precondition> biases_small(const Sdpa& sdpa, Facts& facts);

}  // namespace attn_opt
