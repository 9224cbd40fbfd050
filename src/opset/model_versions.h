// The version numbers of a model: operator sets and IR.
#pragma once

#include "attn_opt/graph.h"

namespace attn_opt {

/// Sets the ai.onnx version to OPSET, where it is lower, for the model and for the functions that use
/// ai.onnx, and raises ir_version to what OPSET asks for.
void set_versions(ModelGraph& view, int opset);

}  // namespace attn_opt
