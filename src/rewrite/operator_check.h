// Nodes that a user writes, held against ONNX's schemas where they are written: a misspelt operator would match nothing, or
// make a model that is not valid.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "attn_opt/status.h"

namespace attn_opt {

/// NODE as an operator of VERSION of its domain: that there is such an operator, with such attributes and as many inputs and
/// outputs. Of domains that ONNX has no schemas for anything is taken. Error: kInvalidInput at WHERE, with the nearest name.
Status check_operator(const onnx::NodeProto& node, int version, const std::string& where);

/// That some version of its domain has OP: "Op" of ai.onnx, or "domain::Op". Otherwise as check_operator().
Status check_operator_name(const std::string& op, const std::string& where);

}  // namespace attn_opt
