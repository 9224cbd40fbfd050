// Types and shapes of what operators of com.microsoft make, where the model declares none.
#include "tests/match/facts_case.h"

namespace attn_opt {
namespace {

/// "float (b, 8)": what is known of y.
std::string known(const std::string& graph) {
  FactsCase c(graph);
  const DataType type = c.facts->type(c.value("y"));
  return (type == onnx::TensorProto::UNDEFINED ? "undefined " : type_name(type) + " ") + c.shape("y");
}

TEST(ContribShapes, OfImages) {
  EXPECT_EQ(known("(float16[b,h,w,32] x, float[32] g) => (y) { y = com.microsoft.GroupNorm<groups=8>(x, g, g) }"),
            "float16 (b, h, w, 32)");
  EXPECT_EQ(known("(float[b,h,w,32] x, float[32] g) => (y) { y, s = com.microsoft.SkipGroupNorm<groups=8>(x, g, g, x) }"),
            "float32 (b, h, w, 32)");
  EXPECT_EQ(known("(float[b,h,w,32] x, float[16,3,3,32] k) => (y) { y = com.microsoft.NhwcConv<kernel_shape=[3,3]>(x, k) }"),
            "float32 (b, ?y.1, ?y.2, 16)");
  EXPECT_EQ(known("(float[b,3,h,w] x, float[16,3,2,2] k) => (y) "
                  "{ y = com.microsoft.FusedConv<strides=[2,2], activation=\"Relu\">(x, k) }"),
            "float32 (b, 16, floor(h/2), floor(w/2))");
  EXPECT_EQ(known("(float[b,s,64] x, float[64] bias, float[b,s,64] z) => (y) { y = com.microsoft.BiasAdd(x, bias, z) }"),
            "float32 (b, s, 64)");
  EXPECT_EQ(known("(float[b,s,64] x, float[64] bias) => (y) { y = com.microsoft.BiasSplitGelu(x, bias) }"),
            "float32 (b, s, 32)");
}

TEST(ContribShapes, OfProducts) {
  EXPECT_EQ(known("(float[m,8] x, float[5,8] w) => (y) { y = com.microsoft.FusedGemm<transB=1>(x, w) }"), "float32 (m, 5)");
  EXPECT_EQ(known("(float[b,s,8] x, float[8,5] w) => (y) { y = com.microsoft.GemmFastGelu(x, w) }"), "float32 (b, s, 5)");
  EXPECT_EQ(known("(float16[n,64] x, float16[n,4] r, float16[4,64,8] w, float16[4,8,64] v) => (y) "
                  "{ y = com.microsoft.MoE<k=2>(x, r, w, , v) }"),
            "float16 (n, 64)");
}

TEST(ContribShapes, OfWhatIsQuantized) {
  EXPECT_EQ(known("(uint8[9,32] t, int64[b,s] i, float16[9,2] scales) => (y) "
                  "{ y = com.microsoft.GatherBlockQuantized(t, i, scales) }"),
            "float16 unknown");
  EXPECT_EQ(known("(uint8[b,s,8] x, uint8[b,s,4] z, float scale, uint8 zero) => (y) "
                  "{ y = com.microsoft.QLinearConcat<axis=2>(scale, zero, x, scale, zero, z, scale, zero) }"),
            "uint8 (b, s, 12)");
  EXPECT_EQ(known("(int8[b,8] x, float scale, int8 zero) => (y) "
                  "{ y = com.microsoft.QLinearLeakyRelu(x, scale, zero, scale, zero) }"),
            "int8 (b, 8)");
}

TEST(ContribShapes, OfRunsAlone) {
  EXPECT_EQ(known("(float[s,8] x, int64 n) => (y) { y = com.microsoft.ExpandDims(x, n) }"), "float32 unknown");
  EXPECT_EQ(known("(float[s,8] x) => (y) { y = com.microsoft.UnfoldTensor<size=2>(x) }"), "float32 unknown");
}

}  // namespace
}  // namespace attn_opt
