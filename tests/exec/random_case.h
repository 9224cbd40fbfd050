// Cases of operators that draw: what a reference drew is no measure, so their outputs are judged by their
// statistics. Bounds are five standard deviations of what is counted.
#pragma once

#include <string>
#include <vector>

#include "attn_opt/executor.h"

namespace attn_opt::testing {

/// True if GRAPH, of one Bernoulli (or its body) or one Dropout, draws for FEEDS.
bool is_draw(const onnx::GraphProto& graph, const Feeds& feeds);

/// Why RESULTS cannot be GRAPH's draw for FEEDS; empty if they can.
std::string improbable(const onnx::GraphProto& graph, const Feeds& feeds, const std::vector<Tensor>& results);

}  // namespace attn_opt::testing
