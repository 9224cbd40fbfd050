// Scan of opset 8, and initializers and constants that are sparse.
#include "tests/exec/models.h"

namespace attn_opt::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

const char* const kRunningSum = R"(<ir_version: 10, opset_import: ["" : 8]>
    agraph (int64[2] lengths, float[2] start, float[2, 3] x) => (float[2] sum, float[2, 3] sums) {
      sum, sums = Scan(lengths, start, x) <num_scan_inputs = 1, directions = [DIRECTION],
        body = step (float s, float e) => (float s_out, float s_copy) {
          s_out = Add(s, e)
          s_copy = Identity(s_out)
        }>
    })";

Expected<std::vector<Tensor>> running_sum(const std::string& direction, const std::vector<int64_t>& lengths,
                                          const Dims& x_dims = {2, 3}) {
  std::string text = kRunningSum;
  text.replace(text.find("DIRECTION"), 9, direction);
  return run_model(text, {{"lengths", Tensor::of<int64_t>({static_cast<int64_t>(lengths.size())}, lengths)},
                          {"start", Tensor::of<float>({2}, {0, 100})},
                          {"x", Tensor::of<float>(x_dims, {1, 2, 3, 4, 5, 6})}});
}

TEST(BatchedScan, StopsAtEachSequencesLength) {
  const auto result = running_sum("0", {3, 1});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_THAT(values<float>((*result)[0]), ElementsAre(6, 104));
  EXPECT_EQ((*result)[1].dims(), (Dims{2, 3}));
  EXPECT_THAT(values<float>((*result)[1]), ElementsAre(1, 3, 6, 104, 0, 0));
}

TEST(BatchedScan, ReversesEachSequenceWithinItsLength) {
  const auto result = running_sum("1", {3, 2});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_THAT(values<float>((*result)[1]), ElementsAre(3, 5, 6, 105, 109, 0));
}

TEST(BatchedScan, TakesEmptySequences) {
  const auto result = running_sum("0", {0, 0});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_THAT(values<float>((*result)[0]), ElementsAre(0, 100));
  EXPECT_THAT(values<float>((*result)[1]), ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(BatchedScan, RefusesLengthsAndShapesThatDoNotFit) {
  expect_error(running_sum("0", {4, 1}), ErrorCode::kInvalidInput, "sequence_lens");
  expect_error(running_sum("0", {-1, 1}), ErrorCode::kInvalidInput, "sequence_lens");
  expect_error(running_sum("0", {3}), ErrorCode::kInvalidInput, "sequence_lens");
  expect_error(running_sum("0", {1, 1}, {6}), ErrorCode::kInvalidInput, "differ in batch");
  expect_error(running_sum("0", {1, 1}, {3, 2}), ErrorCode::kInvalidInput, "differ in batch");
}

onnx::SparseTensorProto sparse(const Dims& dims, const Dims& index_dims, const std::vector<int64_t>& indices) {
  onnx::SparseTensorProto proto;
  *proto.mutable_values() = to_proto(Tensor::of<float>({2}, {5, 7}), "w");
  *proto.mutable_indices() = to_proto(Tensor::of<int64_t>(index_dims, indices));
  for (const int64_t dim : dims) proto.add_dims(dim);
  return proto;
}

Expected<std::vector<Tensor>> run_sparse(const onnx::SparseTensorProto& w) {
  onnx::ModelProto model =
      parse_model("<ir_version: 10, opset_import: [\"\" : 22]> agraph (float[1] x) => (float[2, 3] y) { y = Add(x, w) }");
  *model.mutable_graph()->add_sparse_initializer() = w;
  ATTN_OPT_TRY(const auto executor, Executor::create(model, inline_tensors(), {}));
  return executor.run({{"x", Tensor::of<float>({1}, {0})}});
}

TEST(SparseInitializer, IsMadeDense) {
  for (const auto& w : {sparse({2, 3}, {2}, {1, 5}), sparse({2, 3}, {2, 2}, {0, 1, 1, 2})}) {
    const auto result = run_sparse(w);
    ASSERT_TRUE(result) << result.error().message();
    EXPECT_THAT(values<float>((*result)[0]), ElementsAre(0, 5, 0, 0, 0, 7));
    onnx::NodeProto constant = parse_node("y = Constant()");
    auto* value = constant.add_attribute();
    value->set_name("sparse_value");
    *value->mutable_sparse_tensor() = w;
    const auto same = run_node(constant, {}, {{"", 22}});
    ASSERT_TRUE(same) << same.error().message();
    EXPECT_THAT(values<float>((*same)[0]), ElementsAreArray(values<float>((*result)[0])));
  }
}

TEST(SparseInitializer, ChecksIndicesAndSize) {
  expect_error(run_sparse(sparse({2, 3}, {2}, {1, 6})), ErrorCode::kInvalidInput, "index 6 is out of range");
  expect_error(run_sparse(sparse({2, 3}, {2, 2}, {0, 1, -1, 2})), ErrorCode::kInvalidInput, "index -1");
  expect_error(run_sparse(sparse({2, 3}, {3}, {0, 1, 2})), ErrorCode::kInvalidInput, "not those of the values");
  expect_error(run_sparse(sparse({int64_t{1} << 40, 3}, {2}, {0, 1})), ErrorCode::kLimit, "memory limit");
  expect_error(run_sparse(sparse({-2, 3}, {2}, {0, 1})), ErrorCode::kInvalidInput, "invalid dims");
}

}  // namespace
}  // namespace attn_opt::testing
