// How a type and a symbolic shape are declared in a model.
#pragma once

#include <onnx/onnx_pb.h>

#include "attn_opt/shape.h"
#include "attn_opt/tensor.h"

namespace attn_opt {

/// Writes SHAPE into DECLARED: numbers and names of the model; what is neither stays open.
void declare_sizes(const Shape& shape, onnx::TensorShapeProto& declared);
/// The type of a tensor of TYPE and SHAPE.
onnx::TypeProto declared_type(DataType type, const Shape& shape);

}  // namespace attn_opt
