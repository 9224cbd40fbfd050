// How many nodes of each operator a model has, and how large its weights are.
#pragma once

#include <map>
#include <string>

#include "attn_opt/model.h"
#include "attn_opt/report.h"

namespace attn_opt {

/// By "Op" for ai.onnx, else "domain::Op"; bodies and functions included.
using OperatorCounts = std::map<std::string, int, std::less<>>;
OperatorCounts count_operators(const onnx::ModelProto& model);

/// Of all tensors that MODEL holds, external data included; those whose size is not legal count nothing.
int64_t weight_bytes_of(const onnx::ModelProto& model);

/// Enters the node totals and the operators whose number changed.
void enter_counts(const OperatorCounts& before, const OperatorCounts& after, Report& report);

/// Enters how many operators of attention are none of REPORT's sites.
void enter_attention_nodes(const OperatorCounts& before, Report& report);

}  // namespace attn_opt
