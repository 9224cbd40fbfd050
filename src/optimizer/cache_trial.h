// Runs a model with growing caches and the one with buffers in their place.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "attn_opt/optimizer.h"
#include "src/optimizer/cache_writing.h"

namespace attn_opt {

/// Two models that are to compute the same, and how the inputs of one follow from the other's.
struct CacheTrial {
  const onnx::ModelProto& growing;
  const onnx::ModelProto& fixed;
  const TensorStore& tensors;
  std::vector<std::pair<std::string, std::string>> caches;  ///< names of inputs, and of the outputs that they become
  std::string past, queries;                                ///< symbols of GROWING: rows of the caches, new rows
  CacheBuffers buffers;
  bool keeps_rows = false;     ///< rows of a buffer behind those that hold keys come out as they went in
  bool may_lack_keys = false;  ///< what is NaN while the caches grow is not compared
};

/// Runs both on the same draws: an empty past, several queries and one behind a past, with whatever in the rows that hold
/// nothing yet. Outputs must agree, those of caches in the rows that hold keys.
Verification try_static_caches(const CacheTrial& trial, const ModelTrial& limits);

}  // namespace attn_opt
