// Names that ONNX Runtime gave to what it made of a function's body. It gives them again to the body of the next one, and does
// not load a model that has them already: one that it saved, with Attention of opset 25 and more written out (1.32 has no
// kernel of that), when Attention is written there again.
#pragma once

#include <onnx/onnx_pb.h>

namespace attn_opt {

/// Gives every value of MODEL that a node makes or an initializer holds under such a name another one, inputs and outputs of
/// the model aside.
void rename_inlined_values(onnx::ModelProto& model);

}  // namespace attn_opt
