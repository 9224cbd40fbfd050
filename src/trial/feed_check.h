// Whether inputs are what a model declares.
#pragma once

#include "attn_opt/executor.h"

namespace attn_opt {

/// Error CODE of WHERE unless those of FEEDS that GRAPH takes have the type, the rank and the known sizes that it declares.
Status check_declared(const onnx::GraphProto& graph, const Feeds& feeds, const std::string& where, ErrorCode code);

}  // namespace attn_opt
