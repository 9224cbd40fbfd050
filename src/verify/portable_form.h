// Whether the target takes what an Attention node is given, and takes it as the reference does.
//
// The reference broadcasts a mask of one row, K of one batch, and tells the lowest number from -inf. ONNX Runtime or
// OpenVINO do not: numbers that agree in the executor would differ there.
#pragma once

#include <string>
#include <vector>

#include "attn_opt/target.h"
#include "attn_opt/tensor.h"

namespace attn_opt {

/// INPUTS: those of the node in their order, null for omitted ones. Empty if there is nothing to be said against them.
std::string unportable(const std::vector<const Tensor*>& inputs, const TargetRules& target);

}  // namespace attn_opt
