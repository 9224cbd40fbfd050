// Attention nodes and inputs drawn from all that the schema allows.
#pragma once

#include <random>

#include "tests/exec/models.h"

namespace attn_opt::testing {

struct AttentionCase {
  onnx::NodeProto node;
  std::vector<Tensor> inputs;
  int opset = 23;
  DataType coarsest = onnx::TensorProto::FLOAT;  ///< of the types that scores, weights or outputs are rounded to
};

/// A legal node of TYPE: layouts, head counts, masks, past, outputs and attributes are drawn. HOSTILE cases hold
/// infinities and NaNs in Q, K, V and the mask.
AttentionCase draw_attention(std::mt19937& random, DataType type, bool hostile);

/// The node's attributes and the shapes and types of its inputs.
std::string describe(const AttentionCase& drawn);

}  // namespace attn_opt::testing
