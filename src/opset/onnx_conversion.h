// ONNX's own version converter, for one node.
#pragma once

#include <string>
#include <tl/expected.hpp>

#include "src/opset/draft.h"
#include "src/opset/raise_site.h"

namespace attn_opt {

/// Converts CANONICAL from opset FROM to TO with what SITE tells of its inputs. The error is what ONNX says.
/// Some of its adapters are wrong: the result is to be compared with the original.
tl::expected<Draft, std::string> convert_with_onnx(const onnx::NodeProto& canonical, int from, int to, const RaiseSite& site);

}  // namespace attn_opt
