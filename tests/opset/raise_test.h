// Models in ONNX's textual syntax, raised and run.
#pragma once

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <memory>
#include <string>

#include "attn_opt/internal/opset_raise.h"

namespace attn_opt {

/// The model that TEXT spells.
onnx::ModelProto parse_model(const std::string& text);
/// A model of one graph: GRAPH is "(inputs) => (outputs) { nodes }".
onnx::ModelProto parse_graph(int opset, const std::string& graph);

struct Raised {
  onnx::ModelProto model;  ///< after; as it was if there is a miss
  int converted = 0;
  std::string miss;  ///< "node: found"
};

/// Plans, applies and compacts.
Raised raise_model(const onnx::ModelProto& model, int opset = 24);

/// Expects that AFTER passes ONNX's checker with full_check and gives what BEFORE gives, to the bit, on drawn
/// inputs.
void expect_equal(const onnx::ModelProto& before, const onnx::ModelProto& after);

/// "Constant ReduceSum": the operators of the graph, in their order.
std::string operators(const onnx::ModelProto& model);

}  // namespace attn_opt
