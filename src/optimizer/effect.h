// What a rewrite spares: tensors as large as the scores, and nodes.
#pragma once

#include "attn_opt/internal/emit.h"
#include "attn_opt/report.h"

namespace attn_opt {

/// The effect of EMISSION, of SDPA, before it is committed. Tensors of unknown shape, and those that most runtimes do not make
/// because they only rename what another holds (Reshape and its like), are not counted.
Effect effect_of(const Emission& emission, const Sdpa& sdpa, Facts& facts);

}  // namespace attn_opt
