// Inputs and outputs of the main graph whose type says no shape, not even that of a scalar. ONNX's checker refuses them;
// runtimes take such a model, and some exporters (tf2onnx) write outputs so.
#pragma once

#include <onnx/onnx_pb.h>

namespace attn_opt {

bool lacks_shapes(const onnx::ModelProto& model);

/// Gives each of them some shape, for who only asks whether there is one.
void give_shapes(onnx::ModelProto& model);

}  // namespace attn_opt
