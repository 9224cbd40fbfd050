// Operators whose output has the shape of an input, or of all inputs broadcast.
#include "src/match/node_forms.h"

namespace attn_opt {
namespace {

void broadcast_all(RuleContext& context) {
  Shape result;
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    const MaybeShape shape = context.shape(i);
    if (!shape) return;
    result = context.broadcast(result, *shape);
  }
  context.set_shape(0, std::move(result));
}

void identity(RuleContext& context) {
  if (context.has(0)) context.set_same(0, *context.node().inputs[0]);
}

void cast(RuleContext& context) {
  const int64_t to = context.node().int_attribute("to", 0);
  if (onnx::TensorProto::DataType_IsValid(static_cast<int>(to))) context.set_type(0, static_cast<DataType>(to));
  like_input_0(context);
}

void like_with_dtype(RuleContext& context) {
  if (context.node().attribute("dtype")) {
    const int64_t to = context.node().int_attribute("dtype", 0);
    if (onnx::TensorProto::DataType_IsValid(static_cast<int>(to))) context.set_type(0, static_cast<DataType>(to));
  } else {
    context.set_type(0, context.type(0));
  }
  like_input_0(context);
}

void dropout(RuleContext& context) {
  if (is_inference_dropout(context)) {
    identity(context);
  } else {
    like_input_0(context);
  }
  if (!context.shape(0)) return;
  context.set_shape(1, context.shape(0).known());
  context.set_type(1, context.opset() < 10 ? context.type(0) : onnx::TensorProto::BOOL);
}

/// What of each row was subtracted or divided by, which is as wide as AXIS and those behind it are not.
void set_row_values(RuleContext& context, size_t output) {
  const MaybeShape shape = context.shape(0);
  const int64_t rank = shape ? static_cast<int64_t>(shape->size()) : 0;
  const int64_t said = context.node().int_attribute("axis", -1);
  const int64_t axis = said < 0 ? said + rank : said;
  context.set_type(output, static_cast<DataType>(context.node().int_attribute("stash_type", onnx::TensorProto::FLOAT)));
  if (!shape || axis < 0 || axis > rank) return;
  Shape rows(shape->begin(), shape->begin() + axis);
  rows.resize(shape->size(), Dim(1));
  context.set_shape(output, std::move(rows));
}

/// Before opset 17 it is ONNX Runtime's, whose result is of the scale's type.
void layer_normalization(RuleContext& context) {
  constexpr int kFirstOfOnnx = 17;
  like_input_0(context);
  context.set_type(0, context.type(context.opset() < kFirstOfOnnx ? 1 : 0));
  for (const size_t output : {1, 2}) set_row_values(context, output);
}

void simplified_layer_normalization(RuleContext& context) {
  like_input_0(context);
  context.set_type(0, context.type(1));
  set_row_values(context, 1);
}

using enum ResultType;

constexpr ShapeRule kElementwiseRules[] = {
    {"Identity", identity},
    {"MemcpyFromHost", identity},
    {"MemcpyToHost", identity},
    {"Dropout", dropout},
    {"Cast", cast, kSetByRule, true},
    {"CastLike", like_input_0, kOfInput1},
    {"Abs", like_input_0, kOfInput0, true},
    {"Acos", like_input_0, kOfInput0, true},
    {"Acosh", like_input_0, kOfInput0, true},
    {"Asin", like_input_0, kOfInput0, true},
    {"Asinh", like_input_0, kOfInput0, true},
    {"Atan", like_input_0, kOfInput0, true},
    {"Atanh", like_input_0, kOfInput0, true},
    {"BitwiseNot", like_input_0, kOfInput0, true},
    {"Ceil", like_input_0, kOfInput0, true},
    {"Celu", like_input_0, kOfInput0, true},
    {"Clip", like_input_0, kOfInput0, true},
    {"Cos", like_input_0, kOfInput0, true},
    {"Cosh", like_input_0, kOfInput0, true},
    {"Elu", like_input_0, kOfInput0, true},
    {"Erf", like_input_0, kOfInput0, true},
    {"Exp", like_input_0, kOfInput0, true},
    {"Floor", like_input_0, kOfInput0, true},
    {"Gelu", like_input_0, kOfInput0, true},
    {"HardSigmoid", like_input_0, kOfInput0, true},
    {"HardSwish", like_input_0, kOfInput0, true},
    {"LeakyRelu", like_input_0, kOfInput0, true},
    {"Log", like_input_0, kOfInput0, true},
    {"Mish", like_input_0, kOfInput0, true},
    {"Neg", like_input_0, kOfInput0, true},
    {"Reciprocal", like_input_0, kOfInput0, true},
    {"Relu", like_input_0, kOfInput0, true},
    {"Round", like_input_0, kOfInput0, true},
    {"Selu", like_input_0, kOfInput0, true},
    {"Shrink", like_input_0, kOfInput0, true},
    {"Sigmoid", like_input_0, kOfInput0, true},
    {"Sign", like_input_0, kOfInput0, true},
    {"Sin", like_input_0, kOfInput0, true},
    {"Sinh", like_input_0, kOfInput0, true},
    {"Softplus", like_input_0, kOfInput0, true},
    {"Softsign", like_input_0, kOfInput0, true},
    {"Sqrt", like_input_0, kOfInput0, true},
    {"Swish", like_input_0, kOfInput0, true},
    {"Tan", like_input_0, kOfInput0, true},
    {"Tanh", like_input_0, kOfInput0, true},
    {"ThresholdedRelu", like_input_0, kOfInput0, true},
    {"IsInf", like_input_0, kBool, true},
    {"IsNaN", like_input_0, kBool, true},
    {"Not", like_input_0, kBool, true},
    {"PRelu", like_input_0},
    {"Add", broadcast_all, kOfInput0, true},
    {"BitShift", broadcast_all, kOfInput0, true},
    {"BitwiseAnd", broadcast_all, kOfInput0, true},
    {"BitwiseOr", broadcast_all, kOfInput0, true},
    {"BitwiseXor", broadcast_all, kOfInput0, true},
    {"Div", broadcast_all, kOfInput0, true},
    {"Max", broadcast_all, kOfInput0, true},
    {"Mean", broadcast_all, kOfInput0, true},
    {"Min", broadcast_all, kOfInput0, true},
    {"Mod", broadcast_all, kOfInput0, true},
    {"Mul", broadcast_all, kOfInput0, true},
    {"Pow", broadcast_all, kOfInput0, true},
    {"Sub", broadcast_all, kOfInput0, true},
    {"Sum", broadcast_all, kOfInput0, true},
    {"And", broadcast_all, kBool, true},
    {"Equal", broadcast_all, kBool, true},
    {"Greater", broadcast_all, kBool, true},
    {"GreaterOrEqual", broadcast_all, kBool, true},
    {"Less", broadcast_all, kBool, true},
    {"LessOrEqual", broadcast_all, kBool, true},
    {"Or", broadcast_all, kBool, true},
    {"Xor", broadcast_all, kBool, true},
    {"Where", broadcast_all, kOfInput1, true},
    {"BatchNormalization", like_input_0},
    {"CumProd", like_input_0},
    {"CumSum", like_input_0},
    {"GroupNormalization", like_input_0},
    {"Hardmax", like_input_0},
    {"InstanceNormalization", like_input_0},
    {"LRN", like_input_0},
    {"LayerNormalization", layer_normalization, kSetByRule},
    {"LogSoftmax", like_input_0},
    {"LpNormalization", like_input_0},
    {"MeanVarianceNormalization", like_input_0},
    {"RMSNormalization", like_input_0},
    {"SimplifiedLayerNormalization", simplified_layer_normalization, kSetByRule},
    {"ReverseSequence", like_input_0},
    {"Scatter", like_input_0},
    {"ScatterElements", like_input_0},
    {"ScatterND", like_input_0},
    {"Softmax", like_input_0},
    {"TensorScatter", like_input_0},
    {"Trilu", like_input_0},
    {"Bernoulli", like_with_dtype, kSetByRule},
    {"EyeLike", like_with_dtype, kSetByRule},
    {"RandomNormalLike", like_with_dtype, kSetByRule},
    {"RandomUniformLike", like_with_dtype, kSetByRule},
};

}  // namespace

std::span<const ShapeRule> elementwise_rules() { return kElementwiseRules; }

}  // namespace attn_opt
