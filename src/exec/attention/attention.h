// What an Attention node (opset 23, 24 and 25) asks for, read and checked once. Q, K, V and Y are seen as rows of
// features by batch, head and position, whatever their layout: [B, H, L, D] and [B, L, H * D] alike.
#pragma once

#include "src/exec/kernel.h"

namespace attn_opt {

/// Where the row of a head at a position begins, in elements.
struct HeadLayout {
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0;

  int64_t offset(int64_t batch, int64_t head, int64_t position) const {
    return batch * batch_stride + head * head_stride + position * row_stride;
  }
};

/// Rows read in place.
struct HeadRows {
  DataType type = onnx::TensorProto::UNDEFINED;
  const std::byte* data = nullptr;
  HeadLayout layout;
};

/// Keys [BEGIN, END).
struct KeyRange {
  int64_t begin = 0, end = 0;

  bool empty() const { return begin >= end; }
  int64_t size() const { return empty() ? 0 : end - begin; }
  KeyRange operator&(const KeyRange& other) const { return {std::max(begin, other.begin), std::min(end, other.end)}; }
  bool covers(const KeyRange& other) const { return begin <= other.begin && other.end <= end; }
};

/// Values of attribute qk_matmul_output_mode: the stage at which scores are given.
enum class ScoreStage { kProduct = 0, kSoftcapped = 1, kBiased = 2, kProbabilities = 3, kNone };

struct AttentionProblem {
  int64_t batch = 0, q_heads = 0, kv_heads = 0;
  int64_t queries = 0;
  int64_t past = 0, keys = 0;  ///< keys: past and new ones
  int64_t head_size = 0, v_head_size = 0;
  DataType type;          ///< of Q, K and Y; scores are rounded to it as the schema's body does
  DataType softmax_type;  ///< scores are rounded to it before the softmax
  double scale = 1;       ///< of the scores
  double softcap = 0;     ///< 0: none
  HeadRows q;
  HeadRows key_parts[2], value_parts[2];  ///< keys [0, seam) and [seam, keys), each counted from 0
  int64_t seam = 0;
  HeadLayout y;
  Dims y_dims;
  ScoreStage wanted = ScoreStage::kNone;

  int64_t group() const { return q_heads / std::max<int64_t>(kv_heads, 1); }  ///< query heads that share a key head
  Dims score_dims() const { return {batch, q_heads, queries, keys}; }
};

/// Reads and checks shapes, types and attributes. The rows point into CONTEXT's inputs.
Expected<AttentionProblem> read_attention(const KernelContext& context);

/// The past keys or values and the new ones, FRESH, as one tensor [B, H, S, WIDTH].
Expected<Tensor> joined(const KernelContext& context, const AttentionProblem& problem, const Tensor& fresh,
                        const HeadRows (&parts)[2], int64_t width);

/// The rows of a contiguous [B, H, S, D] tensor.
HeadRows rows_of_heads(const Tensor& tensor);

}  // namespace attn_opt
