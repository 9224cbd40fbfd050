// Arrays of NumPy: archives, and single ones.
#include <algorithm>

#include "fuzz/fuzzing.h"
#include "src/trial/npy.h"
#include "src/trial/npz.h"

namespace {

constexpr size_t kMostMemory = size_t{16} << 20;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attn_opt;
  const fuzzing::MemoryFile file(fuzzing::text_of(data, size));
  (void)read_npz(file.path(), {{"x", onnx::TensorProto::BFLOAT16}}, kMostMemory);
  std::span<const uint8_t> left(data, size);
  const ReadBytes read = [&left](std::span<std::byte> bytes) {
    if (bytes.size() > left.size()) return false;
    std::copy_n(left.begin(), bytes.size(), reinterpret_cast<uint8_t*>(bytes.data()));
    left = left.subspan(bytes.size());
    return true;
  };
  (void)read_npy("x", read, onnx::TensorProto::FLOAT16, kMostMemory);
  return 0;
}
