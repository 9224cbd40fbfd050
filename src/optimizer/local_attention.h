// Functions LocalAttention of a model that has them already: a call behind repeated heads becomes one of LocalAttentionGQA.
#pragma once

#include <optional>

#include "src/optimizer/function_inlining.h"

namespace attn_opt {

/// True for a function that stands for attention itself.
bool is_local_attention(const onnx::FunctionProto& function);

/// Inlines those functions LocalAttention of MODEL of which every call can be written anew, and some call without the
/// repetition of heads in front of it. Nothing, and MODEL is as it was, if there are none.
Expected<std::optional<Inlining>> inline_local_attention(Model& model, const OptimizeOptions& options);

}  // namespace attn_opt
