// Attributes that say yes or no.
#pragma once

#include <string>

#include "src/exec/kernel.h"

namespace attn_opt {

/// Attribute NAME, 0 or 1. Others are none that ONNX gives a meaning: ONNX Runtime takes 2 for no, OpenVINO for yes.
inline Expected<bool> flag(const KernelContext& context, const std::string& name, bool unless_given) {
  const int64_t given = context.attribute_int(name, unless_given ? 1 : 0);
  if (given != 0 && given != 1) return context.unsupported(name + " = " + std::to_string(given));
  return given == 1;
}

}  // namespace attn_opt
