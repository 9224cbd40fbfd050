// ai.onnx.ml. Expected values are ONNX Runtime's where nothing else is said.
#include <cmath>

#include "tests/exec/models.h"

namespace attn_opt::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::Pointwise;

Expected<std::vector<Tensor>> run_ml(const std::string& node, const std::vector<Tensor>& inputs, int version = 3,
                                     const ExecutorOptions& options = {}) {
  return run_text(node, inputs, Opsets{{"", 21}, {"ai.onnx.ml", version}}, options);
}

const Tensor kRows = Tensor::of<float>({3, 2}, {1, 2, 0.1f, -3, -2, 1});

void expect_near(const Expected<std::vector<Tensor>>& result, size_t output, const std::vector<float>& expected) {
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_THAT(values<float>((*result)[output]), Pointwise(::testing::FloatNear(1e-4f), expected));
}

TEST(Features, AreSelectedAndReplaced) {
  const auto selected = run_ml("y = ai.onnx.ml.ArrayFeatureExtractor(x, i)",
                               {Tensor::of<float>({3}, {1, 2, 3}), Tensor::of<int64_t>({1, 2}, {2, 0})});
  ASSERT_TRUE(selected) << selected.error().message();
  EXPECT_EQ((*selected)[0].dims(), (Dims{1, 2}));
  EXPECT_THAT(values<float>((*selected)[0]), ElementsAre(3, 1));
  for (const int64_t index : {int64_t{3}, int64_t{-1}}) {
    expect_error(run_ml("y = ai.onnx.ml.ArrayFeatureExtractor(x, i)",
                        {Tensor::of<float>({3}, {1, 2, 3}), Tensor::of<int64_t>({1}, {index})}),
                 ErrorCode::kInvalidInput, "out of range");
  }
  const auto vectorized = run_ml("y = ai.onnx.ml.FeatureVectorizer<inputdimensions = [3, 1]>(a, b)",
                                 {Tensor::of<int64_t>({2, 2}, {1, 2, 3, 4}), Tensor::of<int64_t>({2, 2}, {5, 6, 7, 8})});
  ASSERT_TRUE(vectorized) << vectorized.error().message();
  EXPECT_THAT(values<float>((*vectorized)[0]), ElementsAre(1, 2, 0, 5, 3, 4, 0, 7));
}

TEST(Features, AreCountedBeforeTheyAreJoined) {
  const Tensor rows(onnx::TensorProto::FLOAT, {int64_t{1} << 40, 0});
  expect_error(run_ml("y = ai.onnx.ml.FeatureVectorizer(a)", {rows}), ErrorCode::kLimit, "memory limit");
  expect_error(run_ml("y = ai.onnx.ml.FeatureVectorizer<inputdimensions = [-1]>(a)", {kRows}), ErrorCode::kInvalidInput,
               "negative");
}

TEST(Features, AreNormalizedByTheLargestAsItIs) {
  const Tensor x = Tensor::of<float>({3, 2}, {1, -4, -1, -2, 0, 0});
  expect_near(run_ml("y = ai.onnx.ml.Normalizer<norm = \"MAX\">(x)", {x}), 0, {1, -4, 1, 2, 0, 0});
  expect_near(run_ml("y = ai.onnx.ml.Normalizer<norm = \"L1\">(x)", {x}), 0, {0.2f, -0.8f, -0.33333f, -0.66667f, 0, 0});
  expect_error(run_ml("y = ai.onnx.ml.Normalizer<norm = \"L3\">(x)", {x}), ErrorCode::kInvalidInput, "L3");
  expect_error(run_ml("y = ai.onnx.ml.Scaler<scale = [1.0, 2.0, 3.0]>(x)", {x}), ErrorCode::kInvalidInput, "neither one");
}

TEST(LabelEncoder, TakesTheLastOfRepeatedKeysAndAnyNaN) {
  ExecutorOptions in_double;
  in_double.compute_f64 = true;
  onnx::NodeProto node = parse_node("y = ai.onnx.ml.LabelEncoder<values_int64s = [1, 2, 3]>(x)");
  auto* keys = node.add_attribute();
  keys->set_name("keys_floats");
  keys->set_type(onnx::AttributeProto::FLOATS);
  for (const float key : {0.1f, std::nanf(""), 0.1f}) keys->add_floats(key);
  const std::vector x{Tensor::of<float>({3}, {std::nanf("7"), 0.1f, 5})};
  for (const ExecutorOptions& options : {ExecutorOptions{}, in_double}) {
    const auto result = run_node(node, x, {{"", 21}, {"ai.onnx.ml", 4}}, options);
    ASSERT_TRUE(result) << result.error().message();
    EXPECT_THAT(values<int64_t>((*result)[0]), ElementsAre(2, 3, -1));
  }
  expect_error(
      run_ml("y = ai.onnx.ml.LabelEncoder<keys_int64s = [1], values_int64s = [1, 2]>(x)", {Tensor::scalar<int64_t>(1)}, 2),
      ErrorCode::kInvalidInput, "differ in number");
}

TEST(LabelEncoder, MapsClassesBothWaysInItsFirstVersion) {
  const std::string node = "y = ai.onnx.ml.LabelEncoder<classes_strings = [\"a\", \"b\"]>(x)";
  const auto indices = run_ml(node, {Tensor::of<std::string>({2}, {"b", "z"})}, 1);
  ASSERT_TRUE(indices) << indices.error().message();
  EXPECT_THAT(values<int64_t>((*indices)[0]), ElementsAre(1, -1));
  const auto names = run_ml(node, {Tensor::of<int64_t>({2}, {1, 5})}, 1);
  ASSERT_TRUE(names) << names.error().message();
  EXPECT_THAT(values<std::string>((*names)[0]), ElementsAre("b", "_Unused"));
}

TEST(OneHotEncoder, FailsOnUnknownCategoriesWhereItIsToldTo) {
  const Tensor x = Tensor::of<float>({2}, {3, 8});
  expect_near(run_ml("y = ai.onnx.ml.OneHotEncoder<cats_int64s = [1, 3]>(x)", {x}), 0, {0, 1, 0, 0});
  expect_error(run_ml("y = ai.onnx.ml.OneHotEncoder<cats_int64s = [1, 3], zeros = 0>(x)", {x}), ErrorCode::kInvalidInput,
               "no category");
}

TEST(LinearClassifier, GivesOneScoreForTwoClassesACounterpart) {
  const auto run = [](const std::string& transform) {
    return run_ml(
        "y, z = ai.onnx.ml.LinearClassifier<coefficients = [0.1, 0.2], intercepts = [0.05], classlabels_ints "
        "= "
        "[7, 9], post_transform = \"" +
            transform + "\">(x)",
        {kRows});
  };
  const auto plain = run("NONE");
  expect_near(plain, 1, {0.45f, 0.55f, 1.54f, -0.54f, 0.95f, 0.05f});
  EXPECT_THAT(values<int64_t>((*plain)[0]), ElementsAre(9, 7, 9));
  expect_near(run("LOGISTIC"), 1, {0.36586f, 0.63414f, 0.63181f, 0.36819f, 0.4875f, 0.5125f});
  expect_near(run("SOFTMAX"), 1, {0.45f, 0.55f, 1.54f, -0.54f, 0.95f, 0.05f});
  expect_error(run("SOFT"), ErrorCode::kInvalidInput, "SOFT");
}

TEST(LinearRegressor, TransformsItsScores) {
  const std::string node =
      "y = ai.onnx.ml.LinearRegressor<coefficients = [0.1, 0.2, 0.3, -0.1], intercepts = [0.05, 0.1], "
      "targets = 2";
  expect_near(run_ml(node + ", post_transform = \"SOFTMAX\">(x)", {kRows}), 0,
              {0.58662f, 0.41338f, 0.27489f, 0.72511f, 0.65701f, 0.34299f});
  const auto probit = run_ml(node + ", post_transform = \"PROBIT\">(x)", {kRows});
  ASSERT_TRUE(probit) << probit.error().message();
  EXPECT_NEAR(values<float>((*probit)[0])[0], 0.12566f, 1e-4f);
  EXPECT_TRUE(std::isnan(values<float>((*probit)[0])[2]));
  expect_error(run_ml("y = ai.onnx.ml.LinearRegressor<coefficients = [1.0], targets = 4611686018427387904>(x)", {kRows}),
               ErrorCode::kInvalidInput, "coefficients");
}

/// Two trees of one branch each.
std::string classifier(const std::string& weights, const std::string& rest, const std::string& children = "1, 0, 0, 1, 0, 0") {
  return "y, z = ai.onnx.ml.TreeEnsembleClassifier<nodes_treeids = [0, 0, 0, 1, 1, 1], nodes_nodeids = [0, "
         "1, 2, 0, 1, "
         "2], nodes_featureids = [0, 0, 0, 1, 0, 0], nodes_modes = [\"BRANCH_LEQ\", \"LEAF\", \"LEAF\", "
         "\"BRANCH_LEQ\", "
         "\"LEAF\", \"LEAF\"], nodes_values = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0], nodes_truenodeids = [" +
         children +
         "], nodes_falsenodeids = [2, 0, 0, 2, 0, 0], class_treeids = [0, 0, 1, 1], class_nodeids = [1, 2, "
         "1, "
         "2], class_weights = [" +
         weights + "], " + rest + ">(x)";
}

TEST(TreeEnsembleClassifier, MeasuresOneScoreByTheSignOfTheVotes) {
  const std::string one = "class_ids = [0, 0, 0, 0], classlabels_int64s = [7, 9]";
  const auto positive = run_ml(classifier("0.125, 0.25, 0.25, 0.5", one), {kRows});
  expect_near(positive, 1, {0.25f, 0.75f, 0.5f, 0.5f, 0.625f, 0.375f});
  EXPECT_THAT(values<int64_t>((*positive)[0]), ElementsAre(9, 7, 7));
  const auto mixed = run_ml(classifier("-0.5, 0.2, 0.3, 0.4", one + ", post_transform = \"LOGISTIC\""), {kRows});
  expect_near(mixed, 1, {0.35434f, 0.64566f, 0.37754f, 0.62246f, 0.54983f, 0.45017f});
  EXPECT_THAT(values<int64_t>((*mixed)[0]), ElementsAre(9, 9, 7));
}

TEST(TreeEnsembleClassifier, AddsBaseValuesAndTransforms) {
  const std::string three =
      "class_ids = [0, 1, 2, 1], classlabels_strings = [\"u\", \"v\", \"w\"], base_values = [0.25, 0.5, 0.1]";
  const auto result = run_ml(classifier("0.1, 0.2, 0.3, 0.4", three + ", post_transform = \"SOFTMAX\""), {kRows});
  expect_near(result, 1, {0.23807f, 0.55701f, 0.20491f, 0.26808f, 0.42045f, 0.31147f, 0.31123f, 0.36159f, 0.32718f});
  EXPECT_THAT(values<std::string>((*result)[0]), ElementsAre("v", "v", "v"));
}

TEST(TreeEnsembleClassifier, RefusesTreesThatAreNone) {
  const std::string one = "class_ids = [0, 0, 0, 0], classlabels_int64s = [7, 9]";
  const std::string weights = "0.1, 0.2, 0.3, 0.4";
  expect_error(run_ml(classifier(weights, one, "0, 0, 0, 0, 0, 0"), {kRows}), ErrorCode::kInvalidInput, "no end");
  expect_error(run_ml(classifier(weights, one, "5, 0, 0, 1, 0, 0"), {kRows}), ErrorCode::kInvalidInput, "not there");
  expect_error(run_ml(classifier("0.1", one), {kRows}), ErrorCode::kInvalidInput, "differ in length");
  expect_error(run_ml(classifier(weights, "class_ids = [0, 0, 0, 2], classlabels_int64s = [7, 9]"), {kRows}),
               ErrorCode::kInvalidInput, "target 2");
  expect_error(run_ml(classifier(weights, one), {Tensor::of<float>({1, 1}, {0})}), ErrorCode::kInvalidInput, "feature 1");
  expect_error(run_ml(classifier(weights, "class_ids = [0, 0, 0, 0], classlabels_int64s = [7]"), {kRows}),
               ErrorCode::kUnsupported, "one class");
}

TEST(TreeEnsembleRegressor, LeavesTargetsWithoutAVoteAtZero) {
  std::string node =
      classifier("-0.1, -0.2, -0.3, -0.4", "class_ids = [0, 0, 0, 0], n_targets = 2, aggregate_function = \"MAX\"");
  node.replace(0, 4, "y");
  for (size_t at; (at = node.find("class_")) != std::string::npos;) node.replace(at, 6, "target_");
  node.replace(node.find("Classifier"), 10, "Regressor");
  expect_near(run_ml(node, {kRows}), 0, {-0.2f, 0, -0.2f, 0, -0.1f, 0});
}

}  // namespace
}  // namespace attn_opt::testing
