// Models in ONNX's textual syntax (.onnxtxt).
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <string_view>
#include <vector>

#include "attn_opt/status.h"

namespace attn_opt {

/// Errors: kInvalidInput with line and column; kLimit for brackets nested too deep.
Expected<onnx::ModelProto> parse_text(std::string_view text, const std::string& where);

/// The functions of a text that holds nothing else. Errors as parse_text().
Expected<std::vector<onnx::FunctionProto>> parse_functions(std::string_view text, const std::string& where);

/// The lines (from 1) at which the operators of the nodes of such a text stand, in its order.
std::vector<int> operator_lines(std::string_view text);

/// FUNCTION as parse_functions() reads it.
std::string print_function(const onnx::FunctionProto& function);

/// Error: kOutput if the model holds what the syntax cannot express (sparse tensors, training information, packed
/// types, ...). Documentation strings of nodes and graphs and quantization annotations are left out.
Expected<std::string> print_text(const onnx::ModelProto& model, const std::string& where);

}  // namespace attn_opt
