#include "src/exec/spare_memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "attn_opt/tensor.h"

namespace attn_opt {
namespace {

constexpr size_t kBytes = size_t{1} << 20;

TEST(SpareMemory, IsGivenOutAgainWhileItIsKept) {
  const SpareMemory kept;
  const std::byte* first = SpareMemory::take(kBytes).get();
  EXPECT_EQ(SpareMemory::take(kBytes - kBytes / 8).get() == first, SpareMemory::keeps());
  const auto held = SpareMemory::take(kBytes);
  EXPECT_EQ(held.get() == first, SpareMemory::keeps());
  EXPECT_NE(SpareMemory::take(kBytes).get(), first);
}

TEST(SpareMemory, TensorsOfUsedMemoryAreZero) {
  const SpareMemory kept;
  std::fill_n(SpareMemory::take(kBytes).get(), kBytes, std::byte{1});
  const Tensor tensor(onnx::TensorProto::FLOAT, {kBytes / 4});
  EXPECT_TRUE(std::ranges::all_of(tensor.data<float>(), [](float x) { return x == 0; }));
}

}  // namespace
}  // namespace attn_opt
