// One small model for each operator that changed: what it becomes at opset 24, and that it computes the same.
#include <ostream>

#include "tests/opset/raise_test.h"

namespace attn_opt {
namespace {

struct OperatorCase {
  std::string name;
  int opset;
  std::string graph;
  std::string operators;  ///< at opset 24
  int converted;
};

void PrintTo(const OperatorCase& one, std::ostream* out) { *out << one.name; }

std::string test_name(const testing::TestParamInfo<OperatorCase>& info) {
  return info.param.name + "_" + std::to_string(info.param.opset);
}

class RaisedOperator : public testing::TestWithParam<OperatorCase> {};

TEST_P(RaisedOperator, ComputesTheSame) {
  const OperatorCase& one = GetParam();
  const onnx::ModelProto before = parse_graph(one.opset, one.graph);
  const Raised raised = raise_model(before);
  ASSERT_EQ(raised.miss, "");
  EXPECT_EQ(raised.converted, one.converted);
  EXPECT_EQ(operators(raised.model), one.operators);
  EXPECT_EQ(opset_version(raised.model), 24);
  EXPECT_EQ(raised.model.ir_version(), 12);
  expect_equal(before, raised.model);
}

TEST_P(RaisedOperator, ComputesTheSameAtLaterOpsets) {
  const OperatorCase& one = GetParam();
  const onnx::ModelProto before = parse_graph(one.opset, one.graph);
  for (const int opset : {25, 26}) {
    const Raised raised = raise_model(before, opset);
    ASSERT_EQ(raised.miss, "");
    EXPECT_EQ(operators(raised.model), one.operators);
    EXPECT_EQ(opset_version(raised.model), opset);
    expect_equal(before, raised.model);
  }
}

std::vector<OperatorCase> reductions() {
  std::vector<OperatorCase> cases;
  for (const std::string op : {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
                               "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"}) {
    for (const int opset : {7, 11, 12}) {
      cases.push_back({op + "Axes", opset, "(float[2,3,4] x) => (float[2,1,1] y) { y = " + op + " <axes = [1, 2]> (x) }",
                       "Constant " + op, 1});
    }
    cases.push_back({op + "All", 11, "(float[2,3,4] x) => (float y) { y = " + op + " <keepdims = 0> (x) }", op, 0});
    if (op == "ReduceSum") continue;
    cases.push_back({op + "Axes", 17, "(float[2,N,4] x) => (float[2,N] y) { y = " + op + " <axes = [-1], keepdims = 0> (x) }",
                     "Constant " + op, 1});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Reductions, RaisedOperator, testing::ValuesIn(reductions()), test_name);

std::vector<OperatorCase> moved_attributes() {
  return {
      {"Squeeze", 11, "(float[1,3,1] x) => (float[1,3] y) { y = Squeeze <axes = [-1]> (x) }", "Constant Squeeze", 1},
      {"SqueezeAll", 7, "(float[1,3,1] x) => (float[3] y) { y = Squeeze (x) }", "Squeeze", 0},
      {"Unsqueeze", 9, "(float[3] x) => (float[1,3,1] y) { y = Unsqueeze <axes = [0, 2]> (x) }", "Constant Unsqueeze", 1},
      {"Unsqueeze", 13, "(float[3] x) => (float[1,3] y) { a = Constant <value_ints = [0]> () y = Unsqueeze (x, a) }",
       "Constant Unsqueeze", 0},
      {"SplitSizes", 11, "(float[5,2] x) => (float[2,2] y, float[3,2] z) { y, z = Split <split = [2, 3]> (x) }",
       "Constant Split", 1},
      {"SplitEvenly", 11, "(float[4,2] x) => (float[2,2] y, float[2,2] z) { y, z = Split (x) }", "Split", 1},
      {"SplitEvenly", 17, "(float[2,N] x) => (float[1,N] y, float[1,N] z) { y, z = Split <axis = 0> (x) }", "Split", 1},
      {"SplitSizes", 13,
       "(float[5] x) => (float[2] y, float[3] z) { s = Constant <value_ints = [2, 3]> () y, z = Split (x, s) "
       "}",
       "Constant Split", 0},
      {"Slice", 9, "(float[4,N] x) => (float[2,M] y) { y = Slice <starts = [1, -9], ends = [3, 99], axes = [0, 1]> (x) }",
       "Constant Constant Constant Slice", 1},
      {"SliceFirstAxes", 7, "(float[4,5] x) => (float[2,5] y) { y = Slice <starts = [1], ends = [3]> (x) }",
       "Constant Constant Slice", 1},
      {"Slice", 10,
       "(float[4] x) => (float[2] y) { s = Constant <value = int64[1] {1}> () e = Constant <value = int64[1] "
       "{3}> () "
       "y = Slice (x, s, e) }",
       "Constant Constant Slice", 0},
      {"Clip", 7, "(float[9] x) => (float[9] y) { y = Clip <min = -0.5, max = 0.25> (x) }", "Constant Constant Clip", 1},
      {"ClipBelow", 10, "(float[9] x) => (float[9] y) { y = Clip <max = 0.25> (x) }", "Constant Clip", 1},
      {"ClipHalf", 6, "(float16[9] x) => (float16[9] y) { y = Clip <min = 0.0> (x) }", "Constant Constant Clip", 1},
      {"Clip", 11, "(float[9] x, float lo) => (float[9] y) { y = Clip (x, lo) }", "Clip", 0},
      {"Pad", 10, "(float[2,3] x) => (float[4,3] y) { y = Pad <pads = [1, 0, 1, 0], value = 2.5> (x) }",
       "Constant Constant Pad", 1},
      {"PadEdge", 7, "(float[2,3] x) => (float[2,6] y) { y = Pad <pads = [0, 1, 0, 2], mode = \"edge\"> (x) }", "Constant Pad",
       1},
      {"Pad", 13, "(float[3] x) => (float[5] y) { p = Constant <value_ints = [1, 1]> () y = Pad (x, p) }", "Constant Pad", 0},
      {"Dropout", 11, "(float[2,3] x) => (float[2,3] y) { y = Dropout <ratio = 0.3> (x) }", "Constant Dropout", 1},
      {"DropoutPlain", 10, "(float[2,3] x) => (float[2,3] y) { y = Dropout (x) }", "Dropout", 0},
      {"DropoutMask", 7, "(float[2,3] x) => (float[2,3] y) { y, m = Dropout (x) }", "Dropout", 1},
      {"DropoutMask", 11, "(float[2,3] x) => (float[2,3] y) { y, m = Dropout (x) }", "Dropout", 1},
      {"DropoutOfEverything", 7, "(float[3] x) => (float[3] y) { y = Dropout <ratio = 1.0> (x) }", "Identity", 1},
      {"DropoutOfHalf", 9, "(float16[2,3] x) => (float16[2,3] y) { y = Dropout <ratio = 0.3> (x) }", "Identity", 1},
      {"TopK", 9, "(float[2,7] x) => (float[2,3] y, int64[2,3] i) { y, i = TopK <k = 3> (x) }", "Constant TopK", 1},
      {"TopK", 10,
       "(float[2,7] x) => (float[2,3] y, int64[2,3] i) { k = Constant <value = int64[1] {3}> () y, i = TopK "
       "(x, k) }",
       "Constant TopK", 0},
  };
}

INSTANTIATE_TEST_SUITE_P(MovedAttributes, RaisedOperator, testing::ValuesIn(moved_attributes()), test_name);

std::vector<OperatorCase> new_meanings() {
  return {
      {"SoftmaxOfRank2", 11, "(float[2,5] x) => (float[2,5] y) { y = Softmax (x) }", "Softmax", 1},
      {"SoftmaxOfRank2", 7, "(float[2,5] x) => (float[2,5] y) { y = Softmax <axis = 1> (x) }", "Softmax", 0},
      {"SoftmaxOfRank3", 11, "(float[2,3,5] x) => (float[2,3,5] y) { y = Softmax <axis = 1> (x) }",
       "Shape Flatten Softmax Reshape", 1},
      {"SoftmaxLastAxis", 12, "(float[2,N,5] x) => (float[2,N,5] y) { y = Softmax <axis = -1> (x) }", "Softmax", 0},
      {"SoftmaxBeforeOnes", 12, "(float[2,3,1] x) => (float[2,3,1] y) { y = Softmax (x) }", "Softmax", 1},
      {"LogSoftmax", 12, "(float[2,3,5] x) => (float[2,3,5] y) { y = LogSoftmax (x) }", "Shape Flatten LogSoftmax Reshape", 1},
      {"Hardmax", 11, "(float[2,3,5] x) => (float[2,3,5] y) { y = Hardmax <axis = 0> (x) }", "Shape Flatten Hardmax Reshape",
       1},
      {"Upsample", 7, "(float[1,1,2,3] x) => (float[1,1,4,9] y) { y = Upsample <scales = [1.0, 1.0, 2.0, 3.0]> (x) }",
       "Constant Resize", 1},
      {"UpsampleLinear", 9,
       "(float[1,1,2,3] x) => (float[1,1,4,6] y) { s = Constant <value = float[4] {1, 1, 2, 2}> () "
       "y = Upsample <mode = \"linear\"> (x, s) }",
       "Constant Resize", 1},
      {"Resize", 10,
       "(float[1,1,2,3] x) => (float[1,1,4,6] y) { s = Constant <value = float[4] {1, 1, 2, 2}> () y = "
       "Resize (x, s) }",
       "Constant Resize", 1},
      {"ResizeShrinking", 10,
       "(float[1,1,4,6] x) => (float[1,1,2,3] y) { s = Constant <value = float[4] {1, 1, 0.5, 0.5}> () "
       "y = Resize <mode = \"linear\"> (x, s) }",
       "Constant Resize", 1},
      {"ResizeNearestShrinking", 10,
       "(float[1,1,4,6] x) => (float[1,1,2,3] y) { s = Constant <value = float[4] {1, 1, 0.6, 0.5}> () "
       "y = Resize (x, s) }",
       "Constant Resize", 1},
      {"ResizeNearestBothWays", 10,
       "(float[1,1,5,4] x) => (float[1,1,3,10] y) { s = Constant <value = float[4] {1, 1, 0.6, 2.5}> () "
       "y = Resize (x, s) }",
       "Constant Constant Max Min Resize Resize", 1},
      {"ResizeOfTensorFlow", 11,
       "(float[1,1,4,4] x) => (float[1,1,8,6] y) { r = Constant <value = float[0] {}> () "
       "s = Constant <value = float[4] {1, 1, 2, 1.5}> () "
       "y = Resize <coordinate_transformation_mode = \"tf_half_pixel_for_nn\", nearest_mode = \"floor\"> (x, "
       "r, s) }",
       "Constant Constant Resize", 1},
      {"ResizeOfTensorFlowTiesDown", 12,
       "(float[1,1,4,4] x) => (float[1,1,8,6] y) { r = Constant <value = float[0] {}> () "
       "s = Constant <value = float[4] {1, 1, 2, 1.5}> () "
       "y = Resize <coordinate_transformation_mode = \"tf_half_pixel_for_nn\"> (x, r, s) }",
       "Constant Constant Resize", 1},
      {"FourierTransform", 17, "(float[1,6,1] x) => (float[1,6,2] y) { y = DFT <axis = 1> (x) }", "Constant DFT", 1},
      {"FourierTransformOfAnotherAxis", 17, "(float[2,6,5,1] x) => (float[2,6,5,2] y) { y = DFT <axis = 2> (x) }",
       "Constant Transpose DFT Transpose", 1},
      {"FourierTransformOnesided", 19,
       "(float[2,6,1] x) => (float[2,5,2] y) { n = Constant <value = int64 {8}> () y = DFT <onesided = 1> "
       "(x, n) }",
       "Constant Constant DFT", 1},
      {"FourierTransformInverse", 17, "(float[2,3,5,2] x) => (float[2,3,5,2] y) { y = DFT <axis = -3, inverse = 1> (x) }",
       "Constant DFT", 1},
      {"Resize", 11,
       "(float[1,1,2,3] x) => (float[1,1,4,6] y) { r = Constant <value = float[0] {}> () "
       "s = Constant <value = float[4] {1, 1, 2, 2}> () y = Resize <mode = \"cubic\"> (x, r, s) }",
       "Constant Constant Resize", 0},
      {"Resize", 13,
       "(float[1,1,2,3] x) => (float[1,1,5,7] y) { s = Constant <value_ints = [1, 1, 5, 7]> () "
       "y = Resize <mode = \"linear\", coordinate_transformation_mode = \"pytorch_half_pixel\"> (x, , , s) }",
       "Constant Resize", 0},
      {"BatchNormalization", 8,
       "(float[2,3,4] x, float[3] s, float[3] b, float[3] m) => (float[2,3,4] y) { v = Exp (m) "
       "y = BatchNormalization <spatial = 1, epsilon = 0.001> (x, s, b, m, v) }",
       "Exp BatchNormalization", 1},
      {"BatchNormalization", 9,
       "(float[2,3,4] x, float[3] s, float[3] b, float[3] m) => (float[2,3,4] y) { v = Exp (m) "
       "y = BatchNormalization (x, s, b, m, v) }",
       "Exp BatchNormalization", 0},
      {"BatchNormalizationTraining", 9,
       "(float[2,3,4] x, float[3] s) => (float[2,3,4] y, float[3] m, float[3] v) "
       "{ y, m, v, saved_m, saved_v = BatchNormalization <momentum = 0.8> (x, s, s, s, s) }",
       "BatchNormalization", 1},
      {"GroupNormalizationOneChannelEach", 18,
       "(float[2,4,5] x, float[4] s, float[4] b) => (float[2,4,5] y) { y = GroupNormalization <num_groups = "
       "4> (x, s, b) }",
       "GroupNormalization", 0},
      {"GroupNormalization", 18,
       "(float[2,6,5] x, float[2] s, float[2] b) => (float[2,6,5] y) { y = GroupNormalization <num_groups = "
       "2> (x, s, b) }",
       "Constant Reshape Constant Expand Constant Reshape Reshape Expand Reshape GroupNormalization", 1},
      {"GroupNormalizationDouble", 20,
       "(double[2,4,5] x, double[4] s, double[4] b) => (double[2,4,5] y) "
       "{ y = GroupNormalization <num_groups = 4> (x, s, b) }",
       "GroupNormalization", 1},
      {"LayerNormalizationOfOnnxRuntime", 11,
       "(float[2,3,4] x, float[4] s) => (float[2,3,4] y, float[2,3,1] m, float[2,3,1] v) "
       "{ y, m, v = LayerNormalization <epsilon = 0.5> (x, s) }",
       "LayerNormalization", 0},
      {"LayerNormalizationOfAWiderScale", 16,
       "(float16[2,3,4] x, float[3,4] s) => (float[2,3,4] y, float[2,1,1] m) "
       "{ y, m = LayerNormalization <axis = 1> (x, s, s) }",
       "Cast LayerNormalization", 1},
      {"SimplifiedLayerNormalization", 11,
       "(float[2,3,4] x, float[4] s) => (float[2,3,4] y, float[2,3,1] v) { y, v = SimplifiedLayerNormalization (x, s) }",
       "SimplifiedLayerNormalization", 0},
      {"ThresholdedReluOfOnnxRuntime", 9, "(float[3] x) => (float[3] y) { y = ThresholdedRelu (x) }", "ThresholdedRelu", 0},
      {"Scatter", 9,
       "(float[3] x, float[2] u) => (float[3] y) { i = Constant <value = int64[2] {2, 0}> () "
       "y = Scatter (x, i, u) }",
       "Constant ScatterElements", 1},
      {"AttentionUnmasked", 23, "(float[1,2,3,4] q, float[1,2,N,4] k) => (float[1,2,3,4] y) { y = Attention (q, k, k) }",
       "Attention", 0},
      {"AttentionMaskOfAllKeys", 23,
       "(float[1,2,3,4] q, float[1,2,N,4] k, float[3,N] m) => (float[1,2,3,4] y) { y = Attention (q, k, k, "
       "m) }",
       "Attention", 0},
      {"AttentionMaskForEveryKey", 23,
       "(float[1,2,3,4] q, float[1,2,5,4] k, float[3,1] m) => (float[1,2,3,4] y) { y = Attention (q, k, k, "
       "m) }",
       "Shape Expand Attention", 1},
      {"AttentionPast", 23,
       "(float[1,2,3,4] q, float[1,2,3,4] k, float[1,2,P,4] pk, float[1,2,P,4] pv, bool[3,1] m) "
       "=> (float[1,2,3,4] y, float[1,2,T,4] a, float[1,2,T,4] b) { y, a, b = Attention (q, k, k, m, pk, pv) "
       "}",
       "Shape Shape Add Expand Attention", 1},
  };
}

INSTANTIATE_TEST_SUITE_P(NewMeanings, RaisedOperator, testing::ValuesIn(new_meanings()), test_name);

TEST(RaisedSoftmax, OfTheLastAxisWhateverTheRank) {
  const Raised raised = raise_model(parse_graph(12, "(float[] x) => (float[] y) { y = Softmax <axis = -1> (x) }"));
  EXPECT_EQ(raised.miss, "");
  EXPECT_EQ(raised.converted, 0);
}

std::vector<OperatorCase> wider_types() {
  return {
      {"Gemm", 7, "(float[2,3] a, float[3,4] b, float[4] c) => (float[2,4] y) { y = Gemm <alpha = 0.5> (a, b, c) }", "Gemm", 0},
      {"Cast", 9, "(float[5] x) => (int32[5] y) { y = Cast <to = 6> (x) }", "Cast", 0},
      {"Cos", 7, "(float[5] x) => (float[5] y) { y = Cos (x) }", "Cos", 0},
      {"ArgMax", 7, "(float[2,5] x) => (int64[2,1] y) { y = ArgMax <axis = 1> (x) }", "ArgMax", 0},
      {"Where", 9, "(bool[2,1] c, float[3] a, float[2,3] b) => (float[2,3] y) { y = Where (c, a, b) }", "Where", 0},
      {"Max", 8, "(float[2,3] a, float[3] b) => (float[2,3] y) { y = Max (a, b) }", "Max", 0},
      {"Erf", 9, "(float[4] x) => (float[4] y) { y = Erf (x) }", "Erf", 0},
      {"MatMul", 8, "(float[2,3] a, float[3,2] b) => (float[2,2] y) { y = MatMul (a, b) }", "MatMul", 0},
      {"Reshape", 8, "(float[2,3] x) => (float[3,2] y) { s = Constant <value = int64[2] {3, -1}> () y = Reshape (x, s) }",
       "Constant Reshape", 0},
      {"Transpose", 7, "(float[2,3] x) => (float[3,2] y) { y = Transpose (x) }", "Transpose", 0},
      {"Flatten", 8, "(float[2,3,4] x) => (float[2,12] y) { y = Flatten (x) }", "Flatten", 0},
      {"OneHot", 9,
       "(int64[3] i, float[2] v) => (float[3,4] y) { d = Constant <value = int64 {4}> () "
       "y = OneHot (i, d, v) }",
       "Constant OneHot", 0},
      {"Shape", 12, "(float[2,N] x) => (int64[2] y) { y = Shape (x) }", "Shape", 0},
      {"Pow", 7, "(float[2,3] a) => (float[2,3] y) { b = Constant <value = float {2}> () y = Pow (a, b) }", "Constant Pow", 0},
      {"Gather", 10, "(float[3,2] x) => (float[2,2] y) { i = Constant <value = int64[2] {2, 0}> () y = Gather (x, i) }",
       "Constant Gather", 0},
      {"CumSum", 11, "(float[3,2] x) => (float[3,2] y) { a = Constant <value = int64 {0}> () y = CumSum (x, a) }",
       "Constant CumSum", 0},
      {"AveragePool", 10, "(float[1,1,4] x) => (float[1,1,3] y) { y = AveragePool <kernel_shape = [2]> (x) }", "AveragePool",
       0},
  };
}

INSTANTIATE_TEST_SUITE_P(WiderTypes, RaisedOperator, testing::ValuesIn(wider_types()), test_name);

std::vector<OperatorCase> by_the_converter_of_onnx() {
  return {
      {"AddBroadcast", 6, "(float[2,3,4] a, float[4] b) => (float[2,3,4] y) { y = Add <broadcast = 1> (a, b) }", "Add", 1},
      {"ReluConsumed", 5, "(float[4] x) => (float[4] y) { y = Relu <consumed_inputs = [0]> (x) }", "Relu", 1},
      {"DropoutTest", 6, "(float[4] x) => (float[4] y) { y = Dropout <is_test = 1> (x) }", "Constant Dropout", 1},
  };
}

INSTANTIATE_TEST_SUITE_P(ByOnnx, RaisedOperator, testing::ValuesIn(by_the_converter_of_onnx()), test_name);

}  // namespace
}  // namespace attn_opt
