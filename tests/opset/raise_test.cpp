#include "tests/opset/raise_test.h"

#include <onnx/checker.h>
#include <onnx/defs/parser.h>

#include "attn_opt/executor.h"
#include "src/io/check/runtime_operators.h"
#include "src/trial/draw_inputs.h"
#include "src/trial/tensor_difference.h"

namespace attn_opt {

onnx::ModelProto parse_model(const std::string& text) {
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(model, text.c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return model;
}

onnx::ModelProto parse_graph(int opset, const std::string& graph) {
  return parse_model("<ir_version: 8, opset_import: [\"\": " + std::to_string(opset) + "]> g " + graph);
}

Raised raise_model(const onnx::ModelProto& model, int opset) {
  Raised raised{model, 0, ""};
  auto view = ModelGraph::create(raised.model);
  EXPECT_TRUE(view.has_value()) << view.error().message();
  if (!view) return raised;
  Facts facts(**view, inline_tensors());
  auto plan = plan_raise(**view, facts, opset);
  EXPECT_EQ(raised.model.SerializeAsString(), model.SerializeAsString()) << "planning changes nothing";
  if (!plan) {
    EXPECT_EQ(plan.error().id, "opset.raise");
    raised.miss = (plan.error().node ? plan.error().node->label() + ": " : "") + plan.error().found;
    return raised;
  }
  raised.converted = plan->converted();
  plan->apply(**view);
  (*view)->compact();
  return raised;
}

namespace {

std::vector<Tensor> run(const onnx::ModelProto& model, const Feeds& feeds) {
  auto executor = Executor::create(model, inline_tensors(), {});
  EXPECT_TRUE(executor.has_value()) << executor.error().message();
  if (!executor) return {};
  auto outputs = executor->run(feeds);
  EXPECT_TRUE(outputs.has_value()) << outputs.error().message();
  return outputs ? *std::move(outputs) : std::vector<Tensor>();
}

}  // namespace

void expect_equal(const onnx::ModelProto& before, const onnx::ModelProto& after) {
  const auto rest = without_runtime_operators(after);
  EXPECT_NO_THROW(onnx::checker::check_model(rest ? *rest : after, /*full_check=*/true)) << after.DebugString();
  for (uint64_t seed = 0; seed < 3; ++seed) {
    DrawOptions options;
    options.seed = seed;
    const auto inputs = draw_inputs(before.graph(), options);
    ASSERT_TRUE(inputs.has_value()) << inputs.error().message();
    const auto expected = run(before, inputs->feeds), actual = run(after, inputs->feeds);
    ASSERT_FALSE(expected.empty());
    ASSERT_EQ(expected.size(), actual.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto found = difference(expected[i], actual[i], {});
      EXPECT_TRUE(found.agrees()) << "output " << i << ": " << to_string(found);
    }
  }
}

std::string operators(const onnx::ModelProto& model) {
  std::string all;
  for (const auto& node : model.graph().node()) all += (all.empty() ? "" : " ") + node.op_type();
  return all;
}

}  // namespace attn_opt
