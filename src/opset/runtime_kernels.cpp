#include "src/opset/runtime_kernels.h"

#include <map>
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

/// Operators that have no kernel for these types, and are run by ONNX's body of their function: up to this opset alone.
constexpr int kLastVersionOfBodies = 18;

const std::map<std::string, std::set<DataType>>& types_without_bodies() {
  using onnx::TensorProto;
  static const std::set<DataType> of_double{TensorProto::DOUBLE};
  static const std::map<std::string, std::set<DataType>> all{
      {"Elu", of_double},
      {"HardSigmoid", of_double},
      {"HardSwish", of_double},
      {"LeakyRelu", of_double},
      {"Mish", of_double},
      {"PRelu", {TensorProto::DOUBLE, TensorProto::INT32, TensorProto::INT64, TensorProto::UINT32, TensorProto::UINT64}},
      {"ReduceLogSumExp", {TensorProto::UINT32, TensorProto::UINT64, TensorProto::BFLOAT16}},
      {"Relu", {TensorProto::INT64}},
      {"Selu", of_double},
      {"Softplus", of_double},
      {"Softsign", of_double},
      {"ThresholdedRelu", of_double}};
  return all;
}

bool loses_its_body(const std::string& op, DataType type, int from, int to) {
  if (from > kLastVersionOfBodies || to <= kLastVersionOfBodies) return false;
  const auto types = types_without_bodies().find(op);
  return types != types_without_bodies().end() && types->second.contains(type);
}

}  // namespace

bool loses_its_kernel(const std::string& op, DataType type, int from, int to) {
  const bool loses_kernel =
      from < kVersionWithoutKernels && to >= kVersionWithoutKernels && operators_without_kernels().contains(op);
  return loses_kernel || loses_its_body(op, type, from, to);
}

}  // namespace attn_opt
