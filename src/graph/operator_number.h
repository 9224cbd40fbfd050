// Operators of ONNX's own domain by number, for questions asked of every node many times: a node knows its own (Node::number).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace attn_opt {

struct Node;

/// Place in kOperatorNames, from 1 on; 0: an operator that is not there.
using OperatorNumber = uint8_t;

/// The operators that an OperatorMap or a shape rule knows something of.
inline constexpr auto kOperatorNames = std::to_array<std::string_view>({
    "Abs",
    "Acos",
    "Acosh",
    "Add",
    "And",
    "ArgMax",
    "ArgMin",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Attention",
    "AveragePool",
    "BatchNormalization",
    "Bernoulli",
    "BitShift",
    "BitwiseAnd",
    "BitwiseNot",
    "BitwiseOr",
    "BitwiseXor",
    "Cast",
    "CastLike",
    "Ceil",
    "Celu",
    "Clip",
    "Concat",
    "ConcatFromSequence",
    "Constant",
    "ConstantOfShape",
    "Conv",
    "ConvTranspose",
    "Cos",
    "Cosh",
    "CumProd",
    "CumSum",
    "DepthToSpace",
    "Div",
    "Dropout",
    "Einsum",
    "Elu",
    "Equal",
    "Erf",
    "Exp",
    "Expand",
    "EyeLike",
    "Flatten",
    "Floor",
    "Gather",
    "GatherElements",
    "GatherND",
    "Gelu",
    "Gemm",
    "GlobalAveragePool",
    "GlobalLpPool",
    "GlobalMaxPool",
    "Greater",
    "GreaterOrEqual",
    "GroupNormalization",
    "HardSigmoid",
    "HardSwish",
    "Hardmax",
    "Identity",
    "InstanceNormalization",
    "IsInf",
    "IsNaN",
    "LRN",
    "LayerNormalization",
    "LeakyRelu",
    "Less",
    "LessOrEqual",
    "Log",
    "LogSoftmax",
    "LpNormalization",
    "LpPool",
    "MatMul",
    "MatMulInteger",
    "Max",
    "MaxPool",
    "Mean",
    "MeanVarianceNormalization",
    "MemcpyFromHost",
    "MemcpyToHost",
    "Min",
    "Mish",
    "Mod",
    "Mul",
    "Neg",
    "NonZero",
    "Not",
    "OneHot",
    "Or",
    "PRelu",
    "Pad",
    "Pow",
    "RMSNormalization",
    "RandomNormalLike",
    "RandomUniformLike",
    "Range",
    "Reciprocal",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
    "Relu",
    "Reshape",
    "Resize",
    "ReverseSequence",
    "RotaryEmbedding",
    "Round",
    "Scatter",
    "ScatterElements",
    "ScatterND",
    "Selu",
    "SequenceAt",
    "Shape",
    "Shrink",
    "Sigmoid",
    "Sign",
    "SimplifiedLayerNormalization",
    "Sin",
    "Sinh",
    "Size",
    "Slice",
    "Softmax",
    "Softplus",
    "Softsign",
    "SpaceToDepth",
    "Split",
    "Sqrt",
    "Squeeze",
    "Sub",
    "Sum",
    "Swish",
    "Tan",
    "Tanh",
    "TensorScatter",
    "ThresholdedRelu",
    "Tile",
    "TopK",
    "Transpose",
    "Trilu",
    "Unsqueeze",
    "Upsample",
    "Where",
    "Xor",
});

/// Numbers by name, made when the program is compiled: found without hashing the whole name.
class OperatorNumbers {
 public:
  constexpr OperatorNumbers() {
    for (size_t i = 0; i < kOperatorNames.size(); ++i) {
      size_t slot = slot_of(kOperatorNames[i]);
      while (numbers_[slot] != 0) slot = (slot + 1) % kSlots;
      numbers_[slot] = static_cast<OperatorNumber>(i + 1);
    }
  }

  constexpr OperatorNumber of(std::string_view op_type) const {
    if (op_type.size() < kEnd) return 0;
    for (size_t slot = slot_of(op_type); numbers_[slot] != 0; slot = (slot + 1) % kSlots)
      if (kOperatorNames[numbers_[slot] - 1] == op_type) return numbers_[slot];
    return 0;
  }

 private:
  static constexpr size_t kSlots = 512;
  static constexpr size_t kEnd = 2;  // letters of a name that are looked at
  static_assert(2 * kOperatorNames.size() <= kSlots);

  /// The length and the last letters tell most operators apart.
  static constexpr size_t slot_of(std::string_view op_type) {
    const size_t last = static_cast<unsigned char>(op_type[op_type.size() - 1]);
    const size_t before = static_cast<unsigned char>(op_type[op_type.size() - 2]);
    return (op_type.size() * 12 + last * 11 + before * 4) % kSlots;
  }

  std::array<OperatorNumber, kSlots> numbers_{};
};

inline constexpr OperatorNumbers kOperatorNumbers;

/// Of the operator that NODE's proto names, 0 in every other domain.
OperatorNumber operator_number(const Node& node);

}  // namespace attn_opt
