// Changes to a model that keep it parsable, and often valid: what a stranger's exporter, or an attacker, may write.
#pragma once

#include <onnx/onnx_pb.h>

namespace attn_opt::fuzzing {

/// Applies one to four changes, the same for the same SEED.
void mutate(onnx::ModelProto& model, unsigned seed);

}  // namespace attn_opt::fuzzing
