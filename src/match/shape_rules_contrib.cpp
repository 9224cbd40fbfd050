// Operators of com.microsoft whose shapes are plain. All others: what the model declares.
#include <algorithm>

#include "src/match/product_shape.h"

namespace attn_opt {
namespace {

/// Output 3 is the sum of input and skip.
void skip_normalization(RuleContext& context) {
  like_input_0(context);
  context.set_type(3, context.type(0));
  if (const MaybeShape shape = context.shape(0)) context.set_shape(3, *shape);
}

/// The shape of factor INPUT as it is multiplied; nullopt if it is not known.
std::optional<Shape> fused_factor(const RuleContext& context, size_t input) {
  const Node& node = context.node();
  const bool moves_batch = node.int_attribute(input == 0 ? "transBatchA" : "transBatchB", 0) != 0;
  const MaybeShape given = context.shape(input);
  if (!given || given->size() < (moves_batch ? 3 : 2)) return std::nullopt;
  Shape factor = *given;
  if (moves_batch) std::rotate(factor.begin(), factor.begin() + 1, factor.end() - 1);
  if (node.int_attribute(input == 0 ? "transA" : "transB", 0) != 0) std::swap(factor.rbegin()[0], factor.rbegin()[1]);
  return factor;
}

void fused_mat_mul(RuleContext& context) {
  const auto left = fused_factor(context, 0), right = fused_factor(context, 1);
  if (!left || !right) return;
  Shape result =
      context.broadcast(Shape(left->begin(), left->end() - 2), Shape(right->begin(), right->end() - 2));
  result.push_back(left->rbegin()[1]);
  result.push_back(right->rbegin()[0]);
  context.set_shape(0, std::move(result));
}

/// Output PRESENT is (b, heads, P + S, size): the rows of input PAST and then those of input ROWS, (b, S, heads * size).
void present_of_heads(RuleContext& context, size_t rows, size_t past, size_t present) {
  const MaybeShape now = context.shape(rows), before = context.shape(past);
  context.set_type(present, context.type(0));
  if (!now || now->size() != 3 || (context.has(past) && (!before || before->size() != 4))) return;
  const Dim heads(context.node().int_attribute("num_heads", 1));
  const auto size = exact_quotient((*now)[2], heads);
  if (before)
    context.set_shape(present, {(*before)[0], (*before)[1], (*before)[2] + (*now)[1], (*before)[3]});
  else if (size)
    context.set_shape(present, {(*now)[0], heads, (*now)[1], *size});
}

/// The features of all heads of V: (b, S, v_hidden), (b, heads, S, v_size), with K in (b, S, heads, 2, size) or with Q and K
/// in (b, S, heads, 3, size).
std::optional<Dim> value_features(const RuleContext& context) {
  const MaybeShape query = context.shape(0), key = context.shape(1), value = context.shape(2);
  if (value && value->size() == 3) return (*value)[2];
  if (value && value->size() == 4) return (*value)[1] * (*value)[3];
  const MaybeShape packed = context.has(1) ? key : query;
  return !context.has(2) && packed && packed->size() == 5 ? std::optional((*packed)[2] * (*packed)[4]) : std::nullopt;
}

/// Query (b, L, hidden) or (b, L, heads, 3, size).
void multi_head_attention(RuleContext& context) {
  constexpr size_t kPastLength = 8;  // caches are then buffers that are written into
  const MaybeShape query = context.shape(0);
  const auto features = value_features(context);
  if (!query || !features || (query->size() != 3 && query->size() != 5)) return;
  context.set_shape(0, {(*query)[0], (*query)[1], *features});
  if (context.has(kPastLength)) return;
  present_of_heads(context, 1, 6, 1);
  present_of_heads(context, 2, 7, 2);
}

/// Input (b, S, hidden) and weights of Q, K and V side by side. Presents: open.
void attention(RuleContext& context) {
  const MaybeShape input = context.shape(0), weights = context.shape(1);
  if (!input || !weights || input->size() != 3 || weights->size() != 2) return;
  const auto* sizes = context.node().ints_attribute("qkv_hidden_sizes");
  const auto value_size = sizes && sizes->size() == 3 ? std::optional(Dim(sizes->Get(2))) : exact_quotient((*weights)[1], Dim(3));
  if (value_size) context.set_shape(0, {(*input)[0], (*input)[1], *value_size});
}

/// Ids (b, S) and a table (words, hidden); output 1 counts the keys of each batch element, output 2 is the sum of embeddings.
void embed_normalization(RuleContext& context) {
  constexpr size_t kIds = 0, kTable = 2;
  for (const size_t output : {0, 2}) context.set_type(output, context.type(kTable));
  context.set_type(1, onnx::TensorProto::INT32);
  const MaybeShape ids = context.shape(kIds), table = context.shape(kTable);
  if (!ids || !table || ids->size() != 2 || table->size() != 2) return;
  for (const size_t output : {0, 2}) context.set_shape(output, {(*ids)[0], (*ids)[1], (*table)[1]});
  context.set_shape(1, {(*ids)[0]});
}

/// Query (b, L, hidden) unless keys and values are packed into it.
void group_query_attention(RuleContext& context) {
  const MaybeShape query = context.shape(0);
  if (query && context.has(1) && query->size() == 3) context.set_shape(0, *query);
}

/// Weights of few bits: A (…, K) becomes (…, N).
void low_bit_product(RuleContext& context) {
  const MaybeShape shape = context.shape(0);
  const int64_t features = context.node().int_attribute("N", 0);
  if (!shape || shape->empty() || features < 1) return;
  Shape result = *shape;
  result.back() = features;
  context.set_shape(0, std::move(result));
}

void dynamic_quantized_product(RuleContext& context) { set_product_shape(context, 0, 1); }

/// The result is of the type of its scales.
void product_to_float(RuleContext& context) {
  context.set_type(0, context.type(2));
  set_product_shape(context, 0, 1);
}

/// Each operand is followed by its scale and its zero point.
void quantized_broadcast(RuleContext& context) {
  const MaybeShape left = context.shape(0), right = context.shape(3);
  if (left && right) context.set_shape(0, context.broadcast(*left, *right));
}

void quantize(RuleContext& context) {
  context.set_type(0, context.has(2) ? context.type(2) : DataType(onnx::TensorProto::UINT8));
  like_input_0(context);
}

constexpr ShapeRule kRules[] = {
    {"Attention", attention},
    {"BiasGelu", like_input_0},
    {"DequantizeLinear", like_input_0, ResultType::kOfInput1},
    {"DynamicQuantizeMatMul", dynamic_quantized_product},
    {"EmbedLayerNormalization", embed_normalization, ResultType::kSetByRule},
    {"FastGelu", like_input_0},
    {"Gelu", like_input_0},
    {"QuickGelu", like_input_0},
    {"RotaryEmbedding", like_input_0},
    {"FusedMatMul", fused_mat_mul},
    {"GroupQueryAttention", group_query_attention},
    {"MatMulBnb4", low_bit_product},
    {"MatMulIntegerToFloat", product_to_float, ResultType::kSetByRule},
    {"MatMulNBits", low_bit_product},
    {"MultiHeadAttention", multi_head_attention},
    {"QLinearAdd", quantized_broadcast},
    {"QLinearMul", quantized_broadcast},
    {"QLinearSigmoid", like_input_0},
    {"QLinearSoftmax", like_input_0},
    {"QuantizeLinear", quantize, ResultType::kSetByRule},
    {"SkipLayerNormalization", skip_normalization},
    {"SkipSimplifiedLayerNormalization", skip_normalization},
};

}  // namespace

std::span<const ShapeRule> contrib_rules() { return kRules; }

}  // namespace attn_opt
