// Modules and source lines that torch.onnx writes into a model: in the report, and on the nodes that are written.
#include "tests/optimizer/optimizer_case.h"

namespace attn_opt {
namespace {

using ::testing::HasSubstr;

std::string metadata(const onnx::NodeProto& node, const std::string& key) {
  for (const auto& property : node.metadata_props())
    if (property.key() == key) return property.value();
  return {};
}

TEST(ExporterNames, SitesHaveModuleAndSourceLine) {
  Model model = load_testdata("encoder-dy20e.onnx");
  const Report report = optimized(model);
  ASSERT_EQ(report.sites.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(report.sites[i].module, "layers." + std::to_string(i));
    EXPECT_EQ(report.sites[i].source_file, "model.py");
    EXPECT_EQ(report.sites[i].source_line, 12);
  }
}

TEST(ExporterNames, WhatIsWrittenKeepsThemOfWhatItReplaces) {
  Model model = load_testdata("encoder-dy20e.onnx");
  std::vector<std::string> softmaxes;
  for (const auto& node : model.proto.graph().node())
    if (node.op_type() == "Softmax") softmaxes.push_back(metadata(node, "namespace"));
  ASSERT_EQ(softmaxes.size(), 2u);
  ASSERT_EQ(optimized(model).fused(), 2);
  size_t attentions = 0;
  for (const auto& node : model.proto.graph().node()) {
    EXPECT_GT(node.metadata_props_size(), 0) << node.name();
    if (node.op_type() != "Attention") continue;
    EXPECT_EQ(metadata(node, "namespace"), softmaxes[attentions]) << "the anchor's counts most";
    EXPECT_THAT(metadata(node, "pkg.torch.onnx.stack_trace"), HasSubstr("model.py\", line 12"));
    EXPECT_THAT(metadata(node, "pkg.torch.onnx.name_scopes"), HasSubstr("'layers." + std::to_string(attentions++) + "'"));
  }
  EXPECT_EQ(attentions, 2u);
  expect_valid(model.proto);
}

TEST(ExporterNames, WithoutMetadataNoneIsWritten) {
  Model model = attention_in_text();
  EXPECT_EQ(optimized(model).sites[0].module, "");
  for (const auto& node : model.proto.graph().node()) EXPECT_EQ(node.metadata_props_size(), 0);
}

}  // namespace
}  // namespace attn_opt
