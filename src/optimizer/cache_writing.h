// Puts buffers of a fixed length in the place of caches that grow.
#pragma once

#include <string>

#include "attn_opt/target.h"
#include "src/optimizer/cache_plan.h"

namespace attn_opt {

/// What a model with buffers is called with, and what stands in it for their sizes.
struct CacheBuffers {
  std::string length_input;  ///< int64 (1): rows of the buffers that hold keys
  std::string symbol;        ///< of the buffers' rows, where LENGTH is none
  int64_t length = 0;        ///< rows of the buffers; 0: a symbol
};

/// Rewrites the nodes of PLAN, which is of VIEW, and what reads the sizes of their caches. The model of VIEW has the input
/// BUFFERS.length_input already.
void write_static_caches(const CachePlan& plan, const CacheBuffers& buffers, const TargetRules& target, ModelGraph& view,
                         Facts& facts);

/// Declares the caches of MODEL as buffers. CACHES: names of inputs, and of the outputs that they become.
void declare_buffers(const std::vector<std::pair<std::string, std::string>>& caches, const CacheBuffers& buffers,
                     onnx::GraphProto& graph);

}  // namespace attn_opt
