// The inputs and outputs of ONNX Attention. Those that contrib operators make from inputs of their own are the same.
#pragma once

namespace attn_opt {

enum AttentionInputSlot { kQ, kK, kV, kMask, kPastKey, kPastValue, kNonpad };
enum AttentionOutputSlot { kY, kPresentKey, kPresentValue, kScores };

}  // namespace attn_opt
