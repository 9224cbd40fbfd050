// Models of testdata and in text, optimized.
#pragma once

#include <gmock/gmock.h>
#include <onnx/checker.h>

#include "attn_opt/model_io.h"
#include "attn_opt/optimizer.h"
#include "tests/text_model.h"

namespace attn_opt {

inline Model load_testdata(const std::string& name) {
  auto model = load_model(std::string(ATTN_OPT_TESTDATA) + "/models/" + name);
  EXPECT_TRUE(model.has_value()) << model.error().message();
  return model ? *std::move(model) : Model{};
}

inline Model in_memory(onnx::ModelProto proto) {
  return {std::move(proto), "-", std::shared_ptr<const TensorStore>(&inline_tensors(), [](const TensorStore*) {})};
}

inline Report optimized(Model& model, const OptimizeOptions& options = {}) {
  auto report = optimize(model, options);
  EXPECT_TRUE(report.has_value()) << report.error().message();
  return report ? *std::move(report) : Report{};
}

/// "anchor: miss id" of every site that was not fused.
inline std::vector<std::string> not_fused(const Report& report) {
  std::vector<std::string> sites;
  for (const SiteReport& site : report.sites)
    if (site.outcome != SiteReport::Outcome::kFused) sites.push_back(site.name + ": " + site.miss_id);
  return sites;
}

inline int count_of(const onnx::GraphProto& graph, const std::string& op) {
  int count = 0;
  for (const auto& node : graph.node()) {
    count += node.op_type() == op;
    for (const auto& attribute : node.attribute())
      if (attribute.has_g()) count += count_of(attribute.g(), op);
  }
  return count;
}
inline int count_of(const onnx::ModelProto& model, const std::string& op) { return count_of(model.graph(), op); }

/// ONNX's own checker with shape inference.
inline void expect_valid(const onnx::ModelProto& model) {
  EXPECT_NO_THROW(onnx::checker::check_model(model, /*full_check=*/true));
}

/// softmax(q k^T) v of (2, 2, 5, 8) as nodes that make PREFIXy of q, k and v.
inline std::string attention_nodes(const std::string& prefix = "", const std::string& axis = "-1") {
  const auto& p = prefix;
  return " " + p + "kt = Transpose <perm = [0, 1, 3, 2]> (k) " + p + "s = MatMul (q, " + p + "kt) " + p +
         "w = Softmax <axis = " + axis + "> (" + p + "s) " + p + "y = MatMul (" + p + "w, v) ";
}

/// A model of NODES with the inputs q, k, v and INPUTS, and the outputs y and OUTPUTS.
inline Model attention_in_text(const std::string& nodes = attention_nodes(), const std::string& inputs = "",
                               const std::string& outputs = "", int opset = 18) {
  const std::string type = "float[2,2,5,8] ";
  return in_memory(model_of_text("<ir_version: 8, opset_import: [\"\": " + std::to_string(opset) + ", \"other\": 3]> g (" +
                                 type + "q, " + type + "k, " + type + "v" + inputs + ") => (" + type + "y" + outputs + ") {" +
                                 nodes + "}"));
}

}  // namespace attn_opt
