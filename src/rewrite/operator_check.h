// Nodes that a user writes, held against ONNX's schemas where they are written: a misspelt operator would match nothing, or
// make a model that is not valid. And nodes of edits where these are written at an older opset.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "attn_opt/edit.h"
#include "attn_opt/facts.h"
#include "attn_opt/miss.h"
#include "attn_opt/status.h"

namespace attn_opt {

/// NODE as an operator of VERSION of its domain: that there is such an operator, with such attributes and as many inputs and
/// outputs. Of domains that ONNX has no schemas for anything is taken. Error: kInvalidInput at WHERE, with the nearest name.
Status check_operator(const onnx::NodeProto& node, int version, const std::string& where);

/// CALL as a call of FUNCTION: that it has no more inputs and outputs, and the attributes that it needs and no others. Errors:
/// as check_operator().
Status check_call(const onnx::NodeProto& call, const onnx::FunctionProto& function, const std::string& where);

/// That some version of its domain has OP: "Op" of ai.onnx, or "domain::Op". Otherwise as check_operator().
Status check_operator_name(const std::string& op, const std::string& where);

/// That the opset of edits has EDIT's operators, with what the nodes give them: every opset that has Attention does.
/// Miss "emit.opset".
Matched<void> check_operators(const Edit& edit, Facts& facts);

/// That EDIT's nodes are such as a model can have: operators of their domains or calls of its functions, with as many inputs
/// and outputs, such attributes and inputs of such types as those take. Miss "rewrite.node", which says what is wrong.
Matched<void> check_new_nodes(const Edit& edit, Facts& facts);

}  // namespace attn_opt
