#include "src/opset/runtime_kernels.h"

#include <set>

namespace attn_opt {
namespace {

constexpr int kVersionWithoutKernels = 22;

/// Bernoulli has none of its own and is computed by RandomUniformLike.
const std::set<std::string>& operators_without_kernels() {
  static const std::set<std::string> all{"Bernoulli",     "GlobalLpPool",      "MaxRoiPool",
                                         "Multinomial",   "RandomNormal",      "RandomNormalLike",
                                         "RandomUniform", "RandomUniformLike", "RoiAlign"};
  return all;
}

}  // namespace

bool loses_its_kernel(const std::string& op, int from, int to) {
  return from < kVersionWithoutKernels && to >= kVersionWithoutKernels && operators_without_kernels().contains(op);
}

}  // namespace attn_opt
