// CPU time of single Attention nodes in the executor.
//
//   attention_kernel CASE ROUNDS      prints the milliseconds of each round, one a line
//   attention_kernel                  prints the cases: name, heads, key heads, queries, keys, width, mask
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <random>

#include "attn_opt/executor.h"

namespace {

using attn_opt::Dims;
using attn_opt::Tensor;

enum class Mask { kNone, kCausal, kFloat, kPadding };
constexpr const char* kMaskNames[] = {"none", "causal", "float", "padding"};

struct Shape {
  const char* name;
  int64_t batch, heads, kv_heads, queries, keys, width;
  Mask mask;
};

constexpr Shape kShapes[] = {
    {"a", 1, 12, 12, 128, 128, 64, Mask::kFloat},    {"b", 1, 12, 12, 512, 512, 64, Mask::kFloat},
    {"c", 1, 32, 8, 1024, 1024, 128, Mask::kCausal}, {"d", 1, 32, 8, 1, 4096, 128, Mask::kNone},
    {"e", 1, 8, 8, 4096, 4096, 64, Mask::kCausal},   {"f", 1, 8, 8, 4096, 4096, 64, Mask::kNone},
    {"g", 8, 12, 12, 128, 128, 64, Mask::kPadding},  {"h", 1, 16, 16, 1024, 1024, 64, Mask::kNone},
};

Tensor normal(Dims dims, std::mt19937& random) {
  Tensor tensor(onnx::TensorProto::FLOAT, std::move(dims));
  std::normal_distribution<float> draw;
  for (float& x : tensor.mutable_data<float>()) x = draw(random);
  return tensor;
}

/// Of each batch entry a few leading keys: 47 % on average.
Tensor padding(const Shape& shape, std::mt19937& random) {
  Tensor mask(onnx::TensorProto::BOOL, {shape.batch, 1, shape.queries, shape.keys});
  auto values = mask.mutable_data<bool>();
  for (int64_t b = 0; b < shape.batch; ++b) {
    const int64_t valid = shape.keys * (20 + static_cast<int64_t>(random() % 55)) / 100;
    for (int64_t i = 0; i < shape.queries; ++i) {
      for (int64_t j = 0; j < valid; ++j) values[static_cast<size_t>((b * shape.queries + i) * shape.keys + j)] = true;
    }
  }
  return mask;
}

int time_rounds(const Shape& shape, int rounds) {
  std::mt19937 random(1);
  std::vector<Tensor> inputs{normal({shape.batch, shape.heads, shape.queries, shape.width}, random),
                             normal({shape.batch, shape.kv_heads, shape.keys, shape.width}, random),
                             normal({shape.batch, shape.kv_heads, shape.keys, shape.width}, random), Tensor()};
  if (shape.mask == Mask::kFloat) inputs[3] = normal({1, 1, shape.queries, shape.keys}, random);
  if (shape.mask == Mask::kPadding) inputs[3] = padding(shape, random);
  onnx::NodeProto node;
  node.set_op_type("Attention");
  for (const char* name : {"q", "k", "v", "mask"}) node.add_input(name);
  node.add_output("y");
  auto* causal = node.add_attribute();
  causal->set_name("is_causal");
  causal->set_type(onnx::AttributeProto::INT);
  causal->set_i(shape.mask == Mask::kCausal);
  for (int round = -1; round < rounds; ++round) {  // the first is not counted
    const std::clock_t start = std::clock();
    if (const auto y = attn_opt::run_node(node, inputs, {{"", 23}}); !y) {
      std::cerr << y.error().message() << "\n";
      return 1;
    }
    if (round >= 0) std::cout << 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC << "\n";
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  for (const Shape& shape : kShapes) {
    if (argc == 3 && shape.name == std::string(argv[1])) return time_rounds(shape, std::atoi(argv[2]));
    if (argc == 1) {
      std::cout << shape.name << " " << shape.batch << " " << shape.heads << " " << shape.kv_heads << " " << shape.queries
                << " " << shape.keys << " " << shape.width << " " << kMaskNames[static_cast<int>(shape.mask)] << "\n";
    }
  }
  return argc == 1 ? 0 : 2;
}
