#include "src/io/check/onnx_schemas.h"

#include <gmock/gmock.h>

#include <set>
#include <thread>
#include <vector>

namespace attn_opt {
namespace {

using ::testing::IsNull;
using ::testing::NotNull;

std::set<std::string> operators() {
  std::set<std::string> names{"Nothing", "", "abs", "Ab", "Absolute", "SimplifiedLayerNormalization"};
  for (const auto& schema : onnx::OpSchemaRegistry::get_all_schemas_with_history()) names.insert(schema.Name());
  return names;
}

TEST(OnnxSchemas, AreThoseThatOnnxRegisters) {
  const auto [first, last] = onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map().at("");
  for (const std::string& op : operators()) {
    for (int opset = first - 1; opset <= last + 1; ++opset) {
      const auto* schema = onnx_schema(op, opset, "");
      const auto* registered = onnx::OpSchemaRegistry::Schema(op, opset, "");
      ASSERT_EQ(schema == nullptr, registered == nullptr) << op << " at " << opset;
      if (!schema) continue;
      ASSERT_EQ(schema->SinceVersion(), registered->SinceVersion()) << op << " at " << opset;
      EXPECT_EQ(schema->Name(), op);
      EXPECT_EQ(schema->domain(), "");
      EXPECT_EQ(schema->Deprecated(), registered->Deprecated());
      EXPECT_EQ(schema->min_input(), registered->min_input());
      EXPECT_EQ(schema->max_output(), registered->max_output());
      EXPECT_EQ(schema->typeConstraintMap().size(), registered->typeConstraintMap().size());
    }
  }
}

TEST(OnnxSchemas, OtherDomainsAreOnnxsOwn) {
  const auto* schema = onnx_schema("LabelEncoder", 4, "ai.onnx.ml");
  ASSERT_THAT(schema, NotNull());
  EXPECT_EQ(schema->SinceVersion(), 4);
  EXPECT_THAT(onnx_schema("LabelEncoder", 4, "com.microsoft"), IsNull());
  EXPECT_THAT(onnx_schema("LabelEncoder", 4, ""), IsNull());
}

TEST(OnnxSchemas, AreOneForAllThreads) {
  std::vector<const onnx::OpSchema*> seen(4);
  {
    std::vector<std::jthread> threads;
    for (auto& schema : seen) threads.emplace_back([&schema] { schema = onnx_schema("Attention", 24, ""); });
  }
  EXPECT_THAT(seen, ::testing::Each(::testing::AllOf(NotNull(), seen[0])));
}

}  // namespace
}  // namespace attn_opt
