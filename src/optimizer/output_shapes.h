// Outputs of a model that was rewritten say their shapes, which ONNX's checker wants and not every exporter writes.
#pragma once

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

/// Declares the shapes, as far as they are known, of the main graph's outputs that have a type without one.
void declare_output_shapes(ModelGraph& model, Facts& facts);

}  // namespace attn_opt
