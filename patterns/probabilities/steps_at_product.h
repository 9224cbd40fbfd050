// The linear steps of probabilities, which V and Y take.
#pragma once

#include <optional>
#include <vector>

#include "attn_opt/internal/sdpa.h"
#include "attn_opt/miss.h"
#include "patterns/probabilities/guard_meaning.h"

namespace attn_opt {

/// V of READING behind the steps of keys, and of whole heads; those of heads that V does not tell apart become steps of rows.
/// Miss "probabilities.operator": a factor that broadcasts to no V.
Matched<ProductSide> stepped_values(Reading& reading, MatchContext& context);

/// Enters in SDPA what the steps of keys ask: where they drop keys, which V does now, that no probability is NaN; in float16,
/// factors that V takes.
void assume_of_steps(const ProbabilityWalk& walk, Sdpa& sdpa, Facts& facts);

/// Enters in SDPA the steps of rows, of Y, and then what is added: the sums were taken through the same steps. Of its outputs
/// that one is left that they apply to. Miss "probabilities.operator": there is none.
Matched<void> add_output_steps(const Reading& reading, Sdpa& sdpa, MatchContext& context);

}  // namespace attn_opt
