// Models as exporters write them: every softmax is fused and verified, and a second run finds nothing left.
#include "tests/optimizer/optimizer_case.h"

namespace attn_opt {
namespace {

using ::testing::IsEmpty;

struct ModelCase {
  std::string file;
  int attentions;
};

void PrintTo(const ModelCase& model, std::ostream* out) { *out << model.file; }

class Models : public ::testing::TestWithParam<ModelCase> {};

TEST_P(Models, AreFusedAndVerified) {
  Model model = load_testdata(GetParam().file);
  OptimizeOptions options;
  options.on_commit = [](const ModelGraph& view, const std::string& site) {
    const Status whole = view.check();
    EXPECT_TRUE(whole) << "after " << site << ": " << whole.error().message();
  };
  const Report report = optimized(model, options);
  EXPECT_THAT(not_fused(report), IsEmpty());
  EXPECT_EQ(report.fused(), GetParam().attentions);
  for (const SiteReport& site : report.sites) {
    ASSERT_TRUE(site.verification.has_value()) << site.name;
    EXPECT_EQ(site.verification->verdict, Verdict::kVerified) << site.name << ": " << site.verification->reason;
  }
  EXPECT_TRUE(report.changed);
  EXPECT_EQ(opset_version(model.proto), 24);
  EXPECT_EQ(report.opset_after, 24);
  EXPECT_EQ(count_of(model.proto, "Softmax"), 0);
  EXPECT_EQ(count_of(model.proto, "Attention"), GetParam().attentions);
  EXPECT_LT(report.nodes_after, report.nodes_before);
  EXPECT_TRUE(check_model(model).has_value());
  expect_valid(model.proto);
}

TEST_P(Models, KeepTheirInterface) {
  const Model before = load_testdata(GetParam().file);
  Model after = load_testdata(GetParam().file);
  optimized(after);
  const auto bytes = [](const auto& values) {
    std::vector<std::string> all;
    for (const auto& value : values) all.push_back(value.SerializeAsString());
    return all;
  };
  EXPECT_EQ(bytes(after.proto.graph().input()), bytes(before.proto.graph().input()));
  EXPECT_EQ(bytes(after.proto.graph().output()), bytes(before.proto.graph().output()));
  EXPECT_EQ(bytes(after.proto.metadata_props()), bytes(before.proto.metadata_props()));
  EXPECT_EQ(after.proto.producer_name(), before.proto.producer_name());
}

TEST_P(Models, HaveNothingLeftForASecondRun) {
  Model model = load_testdata(GetParam().file);
  optimized(model);
  const std::string once = model.proto.SerializeAsString();
  const Report second = optimized(model);
  EXPECT_EQ(second.fused(), 0);
  EXPECT_FALSE(second.changed);
  EXPECT_EQ(model.proto.SerializeAsString(), once);
}

TEST_P(Models, ComeOutEqualEachTime) {
  Model one = load_testdata(GetParam().file), other = load_testdata(GetParam().file);
  optimized(one);
  optimized(other);
  EXPECT_TRUE(one.proto.SerializeAsString() == other.proto.SerializeAsString());
}

/// What is removed leaves no entry behind that names it.
TEST_P(Models, HoldNoTypesOfValuesThatAreGone) {
  Model model = load_testdata(GetParam().file);
  optimized(model);
  const Viewed viewed(model.proto);
  for (const auto& graph : viewed.view->graphs()) {
    if (!graph->proto()) continue;
    for (const auto& info : graph->proto()->value_info()) EXPECT_NE(graph->find(info.name()), nullptr) << info.name();
  }
}

INSTANTIATE_TEST_SUITE_P(Testdata, Models,
                         ::testing::Values(ModelCase{"bert-ts14s.onnx", 2}, ModelCase{"llama-past-ts17s.onnx", 2},
                                           ModelCase{"llama-past-dy18s-extdata/model.onnx", 2},
                                           ModelCase{"opt-t5-decoder_model_merged.onnx", 8},
                                           ModelCase{"sdpa-gqa-dy23s.onnx", 1}, ModelCase{"encoder-dy20e.onnx", 2},
                                           ModelCase{"sdpa-boolmask-ts14s-f16.onnx", 1}, ModelCase{"timm-swin-ts17e.onnx", 4},
                                           ModelCase{"gpt2-past-ts17s.onnx", 2}),
                         [](const auto& instance) {
                           std::string name = instance.param.file;
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

}  // namespace
}  // namespace attn_opt
