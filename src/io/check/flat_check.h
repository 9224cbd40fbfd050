// A first look at a model, in the time that large graphs have.
#pragma once

#include <onnx/onnx_pb.h>

namespace attn_opt {

/// True if ONNX's checker has nothing against MODEL. It is asked about every part, but for names: it keeps each in a
/// hash set of strings, where a model of 100,000 nodes spends three quarters of the check. False says nothing: the
/// model is invalid, or not of the plain form that is looked at here (bodies, functions, sparse initializers).
bool is_valid_flat_model(const onnx::ModelProto& model);

}  // namespace attn_opt
