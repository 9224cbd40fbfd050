// Outputs of a model that was rewritten say their shapes, which ONNX's checker wants and not every exporter writes. So do those
// of Scan's bodies: ONNX Runtime wants them there, and infers none for presents of Attention. Inputs and outputs of all bodies
// say their types: OpenVINO wants that of a query which a Loop carries, and in a function, from which outputs may come, they
// need not.
#pragma once

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

/// Declares the shapes, as far as they are known, of outputs that have none: of the main graph those that have a type, of
/// bodies of Scan all. Of inputs and outputs of all bodies the types.
void declare_output_shapes(ModelGraph& model, Facts& facts);

}  // namespace attn_opt
