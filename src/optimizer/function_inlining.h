// Attention that lies in model-local functions, or across their calls, comes to light by inlining them.
#pragma once

#include <optional>

#include "attn_opt/model.h"
#include "attn_opt/optimizer.h"

namespace attn_opt {

/// Inlines those local functions of MODEL whose nodes some site that can be written covers, and the functions that call
/// them; all others stay. Returns the model as it was; nothing, and MODEL is as it was, if there are none, or if ONNX's
/// inliner refuses the model (functions that import other versions of a domain than the model).
Expected<std::optional<onnx::ModelProto>> inline_attention_functions(Model& model, const OptimizeOptions& options);

}  // namespace attn_opt
