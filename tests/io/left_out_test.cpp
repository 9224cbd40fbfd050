// Models that leave out what runtimes do without.
#include "src/io/left_out.h"

#include "src/io/check/full_check.h"
#include "tests/io/io_test.h"

namespace attn_opt {
namespace {

using testing::HasSubstr;

using LeftOut = IoTest;

TEST_F(LeftOut, ShapesOfInputsAndOutputsMayBe) {
  const auto model =
      load_text("<ir_version: 8, opset_import: [\"\" : 17]> g (float[] x, float[2,4] z) => (float[] y) { y = Add (x, z) }");
  ASSERT_TRUE(model);
  EXPECT_FALSE(model->proto.graph().output(0).type().tensor_type().has_shape());
  EXPECT_TRUE(check_model(*model));
  EXPECT_EQ(full_check(model->proto), "");
}

TEST_F(LeftOut, TheImportOfRuntimesOperatorsMayBe) {
  const auto model =
      load_text("<ir_version: 8, opset_import: [\"\" : 17]> g (float[2,4] x) => (float[2,4] y) { y = com.microsoft.Gelu (x) }");
  ASSERT_TRUE(model);
  EXPECT_TRUE(check_model(*model));
  EXPECT_EQ(full_check(model->proto), "");
}

TEST_F(LeftOut, WhatElseIsWrongIsToldOf) {
  const auto shapeless = load_text("<ir_version: 8, opset_import: [\"\" : 17]> g (float[] x) => (float[] y) { y = Add (x) }");
  ASSERT_TRUE(shapeless);
  EXPECT_THAT(input_error(check_model(*shapeless)), HasSubstr("input size 1"));
  const auto other_domain =
      load_text("<ir_version: 8, opset_import: [\"\" : 17]> g (float[2] x) => (float[2] y) { y = acme.Gelu (x) }");
  ASSERT_TRUE(other_domain);
  EXPECT_THAT(input_error(check_model(*other_domain)), HasSubstr("acme"));
  EXPECT_NE(full_check(other_domain->proto), "");
}

TEST_F(LeftOut, NothingIsSaidTwice) {
  auto model = load_text("<ir_version: 8, opset_import: [\"\" : 17]> g (float[] x) => (float[2] y) { y = Identity (x) }");
  ASSERT_TRUE(model);
  EXPECT_TRUE(leaves_out(model->proto));
  complete(model->proto);
  EXPECT_FALSE(leaves_out(model->proto));
  const int imports = model->proto.opset_import_size();
  complete(model->proto);
  EXPECT_EQ(model->proto.opset_import_size(), imports);
}

}  // namespace
}  // namespace attn_opt
