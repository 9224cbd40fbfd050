// Makes the growing caches of a model buffers of a fixed length: all of them, or none.
#pragma once

#include "attn_opt/optimizer.h"

namespace attn_opt {

/// That the target that OPTIONS name runs static caches, if they ask for them. Error: kUsage.
Status check_kv_cache(const OptimizeOptions& options);

/// Rewrites MODEL, and enters into REPORT what its caller must know, or the miss. ORIGINAL is MODEL as it was read: the result
/// is run against it. If there is a miss MODEL is as it was.
Status make_caches_static(Model& model, const onnx::ModelProto& original, const OptimizeOptions& options, Report& report);

}  // namespace attn_opt
