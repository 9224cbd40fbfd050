// What DequantizeLinear makes of int8, where ONNX Runtime would not load what moves or multiplies it.
#pragma once

#include <set>
#include <string>

#include "attn_opt/model.h"
#include "attn_opt/status.h"

namespace attn_opt {

/// What follows is for models with a DequantizeLinear, and walks all nodes.

/// Outputs of the nodes of MODEL that only move elements, and of its products, where its opset has what ONNX Runtime does not
/// load behind int8.
std::set<std::string> reads_behind_int8(const onnx::ModelProto& model);

/// Moves each DequantizeLinear of int8 numbers in MODEL behind the Reshapes, Transposes, Slices and the like that read what it
/// makes, but those that make a value of KEPT. Every number stays: one scale serves all elements. From opset 21 on ONNX Runtime
/// (1.32) lays a QuantizeLinear behind such a node that names its type, makes the zero point uint8 where the processor is x86
/// and the type not, and refuses the model that it made. It lays a Reshape of its own in front of a MatMul: int8 that a
/// QuantizeLinear makes for one is uint8 then, both zero points being 128 more, which are the same numbers.
Status keep_int8_loadable(Model& model, const std::set<std::string>& kept);

}  // namespace attn_opt
