// What cannot be raised: the miss names the node and says why, and the model stays as it is (raise_model
// checks that).
#include <gmock/gmock.h>

#include "tests/opset/raise_test.h"

namespace attn_opt {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string miss_of(int opset, const std::string& graph, int target = 24) {
  return raise_model(parse_graph(opset, graph), target).miss;
}

TEST(Obstacle, OperatorThatTheOpsetDoesNotHave) {
  EXPECT_EQ(miss_of(17, "(float[4] x) => (float[4] y) { y = Gelu (x) }"),
            "y: Gelu of opset 17 at opset 24: opset 17 has no operator Gelu");
}

TEST(Obstacle, AnotherOperatorOfThatName) {
  EXPECT_THAT(miss_of(8, "(float[1,2,3,4] x) => (float[1,2,3,4] y) { y = MeanVarianceNormalization (x) }"),
              HasSubstr("is gone since opset 9"));
}

TEST(Obstacle, ResultOfAnotherTypeThanTheInput) {
  const std::string narrower = "(float[2,4] x, float16[4] s) => (float16[2,4] y) { y = LayerNormalization (x, s) }";
  EXPECT_THAT(miss_of(14, narrower), HasSubstr("its scale is of a type that does not hold its input"));
  const std::string unknown = "(float[2,4] x, float[4] s) => (y) { z = own.F (x) y = LayerNormalization (z, s) }";
  EXPECT_THAT(miss_of(14, unknown), HasSubstr("the types of its input and scale are not known"));
}

TEST(Obstacle, NodesWithoutWhatTheyNeed) {
  const std::pair<int, std::string> nodes[] = {{10, "Resize (x)"}, {10, "Resize ()"},   {10, "Softmax ()"},
                                               {9, "Slice (x)"},   {7, "Upsample (x)"}, {9, "TopK (x)"}};
  for (const auto& [opset, node] : nodes) {
    EXPECT_THAT(miss_of(opset, "(float[4] x) => (float[4] x) { y = " + node + "}"), HasSubstr("it lacks an"));
  }
}

TEST(Obstacle, SizesBeyondWhatCanBeRun) {
  EXPECT_THAT(miss_of(10, "(float[4] x) => (float[N] y) { y = Pad <pads = [0, 4000000000000000000]> (x) }"),
              HasSubstr("cannot be compared"));
  EXPECT_EQ(miss_of(12, "(float[4000000000,4000000000] x) => (float[1,1] y) { y = ReduceSum <axes = [0, 1]> (x) }"), "");
}

/// Inputs are drawn so that the node can run, whatever is known of their sizes.
TEST(Obstacle, NoneInSizesThatFewNodesAllow) {
  for (const std::string x : {"float[]", "float[n,m,k]"}) {
    EXPECT_EQ(miss_of(11, "(" + x + " x) => (float[n,k] y) { y = Squeeze <axes = [1]> (x) }"), "");
    EXPECT_EQ(miss_of(11, "(" + x +
                              " x) => (float[n,m,300] y, float[n,m,300] z) "
                              "{ y, z = Split <axis = 2, split = [300, 300]> (x) }"),
              "");
    EXPECT_EQ(miss_of(11, "(" + x + " x) => (float[n,m,a] y, float[n,m,b] z) { y, z = Split <axis = -1> (x) }"), "");
    EXPECT_EQ(miss_of(9, "(" + x + " x) => (float[n,m,99] y, int64[n,m,99] i) { y, i = TopK <k = 99> (x) }"), "");
  }
  EXPECT_EQ(miss_of(11,
                    "(float[1,1024,2304] x) => (float[1,1024,1500] y, float[1,1024,804] z) "
                    "{ y, z = Split <axis = 2, split = [1500, 804]> (x) }"),
            "");
  EXPECT_THAT(miss_of(11,
                      "(float[4] x) => (float[a] y, float[b] z) "
                      "{ y, z = Split <split = [9223372036854775807, 9223372036854775807]> (x) }"),
              HasSubstr("cannot be compared"));
}

TEST(Obstacle, RandomResult) {
  EXPECT_THAT(miss_of(6, "(float[4] x) => (float[4] y) { y = Dropout <ratio = 0.5> (x) }"), StartsWith("y: Dropout"));
}

TEST(Obstacle, MaskOfDropout) {
  for (const int opset : {7, 10}) {
    EXPECT_THAT(miss_of(opset, "(float[4] x) => (float[4] y, float[4] m) { y, m = Dropout (x) }"), HasSubstr("mask is read"));
  }
}

TEST(Obstacle, TrainingOutputs) {
  EXPECT_THAT(miss_of(9,
                      "(float[2,3] x, float[3] s) => (float[2,3] y, float[3] saved) "
                      "{ y, m, v, saved, w = BatchNormalization (x, s, s, s, s) }"),
              HasSubstr("saved_mean and saved_var are gone"));
  EXPECT_THAT(miss_of(8,
                      "(float[2,3] x, float[3] s) => (float[2,3] y) "
                      "{ y = BatchNormalization <spatial = 0> (x, s, s, s, s) }"),
              HasSubstr("spatial = 0"));
}

TEST(Obstacle, GroupsOfAnUnknownNumberOfChannels) {
  EXPECT_THAT(miss_of(18,
                      "(float[2,C,5] x, float[2] s) => (float[2,C,5] y) "
                      "{ y = GroupNormalization <num_groups = 2> (x, s, s) }"),
              HasSubstr("number of channels is not known"));
}

TEST(Obstacle, CoordinateModeThatIsGone) {
  EXPECT_THAT(miss_of(11,
                      "(float[1,1,2,3] x, float[8] r, float[4] s) => (float[1,1,H,W] y) "
                      "{ y = Resize <mode = \"linear\", coordinate_transformation_mode = "
                      "\"tf_half_pixel_for_nn\"> (x, r, s) }"),
              HasSubstr("tf_half_pixel_for_nn"));
}

/// Its caller may give either: as inputs of the node they are both there.
TEST(Obstacle, ScalesAndSizesOfWhichNoneIsKnownToBeEmpty) {
  EXPECT_THAT(miss_of(11,
                      "(float[1,1,2,3] x, float[8] r, float[N] s, int64[M] n) => (float[1,1,H,W] y) "
                      "{ y = Resize <mode = \"linear\"> (x, r, s, n) }"),
              HasSubstr("which of scales and sizes is empty is not known"));
}

/// What the text says of the odd element of the padding was turned round at 11; runtimes never were.
TEST(Obstacle, NoneInPaddingOfTransposedConvolutions) {
  for (const std::string attribute : {"auto_pad = \"SAME_UPPER\"", "output_shape = [5]", "pads = [1, 0]"}) {
    EXPECT_EQ(
        miss_of(10, "(float[1,1,4] x, float[1,1,3] w) => (float[1,1,N] y) { y = ConvTranspose <" + attribute + "> (x, w) }"),
        "");
  }
}

TEST(Obstacle, KernelThatOnnxRuntimeLacks) {
  EXPECT_EQ(miss_of(17, "(float[2] x) => (float[2] y) { y = RandomNormalLike (x) }"),
            "y: RandomNormalLike of opset 17 at opset 24: ONNX Runtime runs it only at lower opsets");
  EXPECT_EQ(miss_of(22, "(float[2] x) => (float[2] y) { y = RandomNormalLike (x) }"), "");
}

TEST(Obstacle, InfinityInFloat8) {
  EXPECT_THAT(miss_of(23, "(float[4] x) => (float8e4m3fnuz[4] y) { y = Cast <to = 18> (x) }"), HasSubstr("infinity"));
  EXPECT_EQ(miss_of(23, "(float[4] x) => (float8e4m3fnuz[4] y) { y = Cast <to = 18, saturate = 0> (x) }"), "");
  EXPECT_EQ(miss_of(23, "(float[4] x) => (float8e4m3fn[4] y) { y = Cast <to = 17> (x) }"), "");
}

TEST(Obstacle, SlopeOfTheChannels) {
  EXPECT_THAT(miss_of(6, "(float[2,3,4] x, float[3] s) => (float[2,3,4] y) { y = PRelu (x, s) }"), HasSubstr("channels"));
  EXPECT_EQ(miss_of(6, "(float[2,3,4] x, float[1] s) => (float[2,3,4] y) { y = PRelu (x, s) }"), "");
}

TEST(Obstacle, ConversionThatCannotBeRun) {
  EXPECT_THAT(miss_of(17,
                      "(float[1,8,1] x) => (float[1,N,2] y) "
                      "{ n = Constant <value = int64 {99999}> () y = DFT <axis = 1> (x, n) }"),
              HasSubstr("cannot be compared"));
}

/// Attributes that only spell out what was the default need no run.
TEST(Obstacle, NoneInARespelledAttribute) {
  const Raised raised = raise_model(parse_graph(16,
                                                "(float[1,1,4,4] x, float[1,2,2,2] g) => (float[1,1,2,2] y) "
                                                "{ y = GridSample <mode = \"bicubic\"> (x, g) }"));
  EXPECT_EQ(raised.miss, "");
  EXPECT_EQ(raised.model.graph().node(0).attribute(0).s(), "cubic");
}

TEST(Obstacle, BodyOfAnOperatorThatChanged) {
  EXPECT_THAT(miss_of(8,
                      "(float[1,2,3] x) => (float[1,2,3] y) "
                      "{ y = Scan <num_scan_inputs = 1, body = b (float[3] e) => (float[3] f) { f = Abs (e) }> (, x) }"),
              HasSubstr("Scan of opset 8"));
}

TEST(Obstacle, AttributeGivenByTheCaller) {
  const auto model = parse_model(R"(<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
      g (float[2,3] x) => (float[2,1] y) { y = own.F <axes = [1]> (x) }
      <domain: "own", opset_import: ["" : 17]> F <axes> (a) => (b) { b = ReduceMax <axes: ints = @axes> (a) })");
  EXPECT_THAT(raise_model(model).miss, HasSubstr("attribute axes is given by the function's caller"));
}

TEST(Obstacle, NodeOfTraining) {
  auto model = parse_graph(12, "(float[4] x) => (float[4] y) { y = Abs (x) }");
  auto* node = model.add_training_info()->mutable_algorithm()->add_node();
  node->set_op_type("ReduceSum");
  node->add_input("x");
  node->add_output("s");
  EXPECT_THAT(raise_model(model).miss, HasSubstr("in a graph of training"));
  node->set_op_type("Exp");
  EXPECT_EQ(raise_model(model).miss, "");
}

TEST(Obstacle, AttentionHeadsOfRank4AtOpset25) {
  const std::string node = "{ y = Attention <q_num_heads = 2, kv_num_heads = 2> (q, q, q) }";
  EXPECT_THAT(miss_of(24, "(float[1,2,3,4] q) => (float[1,2,3,4] y)" + node, 25), HasSubstr("not of rank 3"));
  EXPECT_EQ(miss_of(24, "(float[1,3,8] q) => (float[1,3,8] y)" + node, 25), "");
}

}  // namespace
}  // namespace attn_opt
