// How the work of a run grows with the graph, told by what is allocated: the same on every machine, busy or not.
#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/optimizer/optimizer_case.h"

namespace {

std::atomic<size_t> allocations = 0;

}  // namespace

// Of the whole test program; the other forms of new and delete call these, but for the one that does not throw: a sanitizer has
// its own. Inlined, new and free() would not match.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size > 0 ? size : 1);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace attn_opt {
namespace {

/// What a layer of a decoder has: projections with a bias, a mask, residuals, and activations that may be taken for parts of a
/// softmax. Reads and makes x, called by the number of the layer.
std::string layer(int number) {
  const std::string x = "x" + std::to_string(number), y = "x" + std::to_string(number + 1), p = "l" + std::to_string(number);
  const auto heads = [&](const std::string& role, const std::string& perm) {
    const std::string own = p + role;
    return own + "m = MatMul (" + p + "n, w) " + own + "b = Add (" + own + "m, bias) " + own + "r = Reshape (" + own +
           "b, split) " + own + " = Transpose <perm = [" + perm + "]> (" + own + "r) ";
  };
  return p + "n = LayerNormalization (" + x + ", bias) " + heads("q", "0, 2, 1, 3") + heads("k", "0, 2, 3, 1") +
         heads("v", "0, 2, 1, 3") + p + "s = MatMul (" + p + "q, " + p + "k) " + p + "c = Mul (" + p + "s, scale) " + p +
         "a = Add (" + p + "c, mask) " + p + "p = Softmax <axis = -1> (" + p + "a) " + p + "y = MatMul (" + p + "p, " + p +
         "v) " + p + "t = Transpose <perm = [0, 2, 1, 3]> (" + p + "y) " + p + "j = Reshape (" + p + "t, merge) " + p +
         "o = MatMul (" + p + "j, w) " + p + "d = Add (" + p + "o, bias) " + p + "x = Add (" + x + ", " + p + "d) " + p +
         "g = Sigmoid (" + p + "x) " + p + "u = Mul (" + p + "x, " + p + "g) " + p + "h = Tanh (" + p + "u) " + p +
         "e = Elu (" + p + "h) " + p + "f = Div (" + p + "e, two) " + y + " = Add (" + p + "x, " + p + "f) ";
}

/// How much a run over so many LAYERS allocates.
size_t allocated(int layers) {
  const std::string last = "x" + std::to_string(layers);
  std::string nodes;
  for (int i = 0; i < layers; ++i) nodes += layer(i);
  Model model = in_memory(model_of_text(
      "<ir_version: 10, opset_import: [\"\" : 24]> deep (float[batch,seq,8] x0, float[batch,1,1,seq] mask, float[8,8] w, "
      "float[8] bias) => (float[batch,seq,8] " +
      last + ") <int64[4] split = {0, 0, 2, 4}, int64[3] merge = {0, 0, 8}, float scale = {0.5}, float two = {2}> {" + nodes +
      "}"));
  OptimizeOptions options;
  options.verify = VerifyMode::kOff;
  const size_t before = allocations;
  EXPECT_EQ(optimized(model, options).fused(), layers);
  return allocations - before;
}

TEST(Growth, WorkIsLinearInTheGraph) {
  allocated(1);  // what is made once
  const size_t few = allocated(20), many = allocated(80);
  EXPECT_LE(many, 4.2 * static_cast<double>(few));
  EXPECT_LE(many / 80, 1150U) << "of a layer; 973 when this was written: what is it that is looked at in vain?";
}

}  // namespace
}  // namespace attn_opt
