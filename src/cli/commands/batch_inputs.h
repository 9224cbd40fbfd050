// The models of a batch.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "attn_opt/status.h"

namespace attn_opt {

struct BatchInput {
  std::filesystem::path path;
  std::filesystem::path below_root;  ///< where its output lies below the folder of outputs
};

/// WORDS name folders, in which all .onnx files are taken, models, and @LISTs of such, a line each ("@-": standard input).
/// ROOT is the folder that the layout of outputs begins at; empty: the folder that all models have in common. What lies
/// in OUTPUTS is no input. Sorted. Errors: kUsage (a model outside ROOT; none at all, though no list was given, which may be
/// empty), kInvalidInput (no such list or folder).
Expected<std::vector<BatchInput>> batch_inputs(const std::vector<std::string>& words, const std::filesystem::path& root,
                                               const std::filesystem::path& outputs);

}  // namespace attn_opt
