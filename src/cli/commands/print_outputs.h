// What a run gave, a line an output.
#pragma once

#include <vector>

#include "attn_opt/tensor.h"

namespace attn_opt {

/// OUTPUTS of GRAPH to standard output: name, type, dims, and the range of the numbers.
void print_outputs(const onnx::GraphProto& graph, const std::vector<Tensor>& outputs);

}  // namespace attn_opt
