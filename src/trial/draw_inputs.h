// Inputs for a whole model, drawn from what its graph declares.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "attn_opt/executor.h"
#include "src/trial/fill.h"

namespace attn_opt {

using Sizes = std::map<std::string, int64_t>;

struct DrawOptions {
  /// Sizes by symbol; an axis with neither number nor name is called INPUT[AXIS]. Others get small primes,
  /// each its own.
  Sizes sizes;
  std::map<std::string, Fill> fills;  ///< by input; others get default_fill()
  uint64_t seed = 0;
  size_t memory_limit = size_t{4} << 30;  ///< bytes of all inputs
};

struct DrawnInputs {
  Feeds feeds;
  Sizes sizes;  ///< of every symbol
};

/// One tensor for every input of GRAPH that has no initializer. The same options give the same tensors.
/// Errors: kUsage (a size or fill for what GRAPH does not have), kUnsupported (an input that is no tensor,
/// has no declared rank, or is of a type that cannot be drawn), kLimit.
Expected<DrawnInputs> draw_inputs(const onnx::GraphProto& graph, const DrawOptions& options);

/// As Executor::run; an error says with which sizes the inputs were drawn, which may not go together.
Expected<std::vector<Tensor>> run_on(const Executor& executor, const DrawnInputs& inputs);

/// The inputs of GRAPH that a caller must feed, in order.
std::vector<const onnx::ValueInfoProto*> required_inputs(const onnx::GraphProto& graph);

}  // namespace attn_opt
