#include "src/trial/feed_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/text_model.h"

namespace attn_opt {
namespace {

using testing::HasSubstr;

class FeedCheck : public testing::Test {
 protected:
  std::string refusal(const Tensor& x) const {
    const Status status = check_declared(model_.graph(), {{"x", x}}, "a.npz", ErrorCode::kInvalidInput);
    return status ? "" : status.error().message();
  }

  const onnx::ModelProto model_ = model_of_graph("(float[n,3] x, float y) => (float[n,3] z) { z = Add (x, y) }");
};

TEST_F(FeedCheck, TakesWhatIsDeclared) { EXPECT_EQ(refusal(Tensor::of<float>({2, 3}, std::vector<float>(6))), ""); }

TEST_F(FeedCheck, NamesAnotherType) {
  EXPECT_THAT(refusal(Tensor::of<double>({2, 3}, std::vector<double>(6))),
              HasSubstr("input 'x' is float64, and the model takes float32"));
}

TEST_F(FeedCheck, NamesAnotherShape) {
  EXPECT_THAT(refusal(Tensor::of<float>({2, 2}, std::vector<float>(4))),
              HasSubstr("input 'x' is [2, 2], and the model takes [n, 3]"));
  EXPECT_THAT(refusal(Tensor::of<float>({3}, std::vector<float>(3))), HasSubstr("the model takes [n, 3]"));
}

}  // namespace
}  // namespace attn_opt
