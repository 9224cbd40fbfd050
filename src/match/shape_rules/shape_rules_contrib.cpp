// Operators of com.microsoft whose shapes are plain. All others: what the model declares.
#include <algorithm>

#include "src/match/sizes/product_shape.h"

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
  Shape result = context.broadcast(Shape(left->begin(), left->end() - 2), Shape(right->begin(), right->end() - 2));
  result.push_back(left->rbegin()[1]);
  result.push_back(right->rbegin()[0]);
  context.set_shape(0, std::move(result));
}

/// What keys (INPUT 1) or values (INPUT 2) are given in: (b, S, heads * size), by heads (b, heads, S, size), or packed with
/// those before them into (b, S, heads, parts, size). Null if that is not known.
MaybeShape given_rows(const RuleContext& context, size_t input) {
  constexpr size_t kPackedRank = 5;
  if (context.has(input)) return context.shape(input);
  const MaybeShape packed = context.shape(context.has(input - 1) ? input - 1 : 0);
  return packed && packed->size() == kPackedRank ? packed : nullptr;
}

/// GIVEN, as given_rows() says, by HEADS: (b, heads, S, size).
std::optional<Shape> rows_by_heads(const Shape& given, const Dim& heads) {
  if (given.size() == 4) return given;
  if (given.size() == 5) return Shape{given[0], given[2], given[1], given[4]};
  const auto size = given.size() == 3 ? exact_quotient(given[2], heads) : std::nullopt;
  if (!size) return std::nullopt;
  return Shape{given[0], heads, given[1], *size};
}

/// Output PRESENT is (b, heads, P + S, size): the rows of input PAST and then those of input ROWS.
void present_of_heads(RuleContext& context, size_t rows, size_t past, size_t present) {
  const MaybeShape now = given_rows(context, rows), before = context.shape(past);
  context.set_type(present, context.type(0));
  if (!now || now->size() < 3 || (context.has(past) && (!before || before->size() != 4))) return;
  if (before)
    context.set_shape(present, {(*before)[0], (*before)[1], (*before)[2] + (*now)[now->size() == 4 ? 2 : 1], (*before)[3]});
  else if (auto heads = rows_by_heads(*now, Dim(context.node().int_attribute("num_heads", 1))))
    context.set_shape(present, *std::move(heads));
}

/// The features of all heads of V.
std::optional<Dim> value_features(const RuleContext& context) {
  const MaybeShape value = given_rows(context, 2);
  if (!value) return std::nullopt;
  if (value->size() == 3) return (*value)[2];
  const auto heads = rows_by_heads(*value, Dim(1));
  return heads ? std::optional((*heads)[1] * (*heads)[3]) : std::nullopt;
}

/// A bias (b or 1, heads or 1, L, total) of the scores is INPUT.
void require_bias_of(const Dim& batch, size_t input, RuleContext& context) {
  context.require_size_or_one(batch, {input, 4, 0});
  context.require_size_or_one(Dim(context.node().int_attribute("num_heads", 1)), {input, 4, 1});
}

/// Sizes that Q, K, V and the past of MultiHeadAttention have in common, else ONNX Runtime refuses it.
void require_common_sizes_of_heads(RuleContext& context) {
  constexpr size_t kQuery = 0, kKey = 1, kValue = 2, kPadding = 4, kBias = 5, kPastKey = 6, kPastValue = 7;
  for (const size_t rank : {3, 4, 5})
    for (const size_t input : {kKey, kValue}) context.require_equal({kQuery, 3, 0}, {input, rank, 0});
  const int64_t heads = context.node().int_attribute("num_heads", 0);
  for (const size_t past : {kPastKey, kPastValue}) {
    context.require_equal({kQuery, 3, 0}, {past, 4, 0});
    if (heads > 0) context.require_size(Dim(heads), {past, 4, 1});
  }
  const MaybeShape queries = context.shape(kQuery);
  const auto size = queries.has_rank(3) && heads > 0 ? exact_quotient((*queries)[2], Dim(heads)) : std::nullopt;
  if (size) context.require_size(*size, {kPastKey, 4, 3});
  for (const size_t query : {3, 5})
    for (const size_t rank : {2, 3}) context.require_equal({kQuery, query, 0}, {kPadding, rank, 0});
  context.require_equal({kKey, 3, 1}, {kValue, 3, 1});
  context.require_equal({kKey, 4, 2}, {kValue, 4, 2});
  context.require_equal({kPastKey, 4, 2}, {kPastValue, 4, 2});
  for (const size_t query : {3, 5}) context.require_equal({kQuery, query, 1}, {kBias, 4, 2});
  const MaybeShape keys = given_rows(context, kKey), past = context.shape(kPastKey);
  if (!queries || queries->empty() || !keys || keys->size() < 3 || (context.has(kPastKey) && !past.has_rank(4))) return;
  require_bias_of((*queries)[0], kBias, context);
  const Dim now = (*keys)[keys->size() == 4 ? 2 : 1], total = past ? now + (*past)[2] : now;
  for (const InputAxis axis : {InputAxis{kBias, 4, 3}, {kPadding, 2, 1}, {kPadding, 3, 2}}) context.require_size(total, axis);
}

/// Query (b, L, hidden) or (b, L, heads, 3, size).
void multi_head_attention(RuleContext& context) {
  constexpr size_t kPastLength = 8;  // caches are then buffers that are written into
  require_common_sizes_of_heads(context);
  const MaybeShape query = context.shape(0);
  const auto features = value_features(context);
  if (!query || !features || (query->size() != 3 && query->size() != 5)) return;
  context.set_shape(0, {(*query)[0], (*query)[1], *features});
  if (context.has(kPastLength)) return;
  present_of_heads(context, 1, 6, 1);
  present_of_heads(context, 2, 7, 2);
}

/// Input (b, S, hidden) and weights of Q, K and V side by side; inputs MASK and PAST. Presents: open.
void projected_sizes(RuleContext& context, size_t mask, size_t past) {
  constexpr size_t kInput = 0;
  const MaybeShape given = context.shape(mask);
  // One of (1, 1) stands for none, whatever the batch (ONNX Runtime, attention_base.h).
  const bool is_none = given.has_rank(2) && (*given)[0].is(1) && (*given)[1].is(1);
  if (!is_none)
    for (const size_t rank : {2, 3}) context.require_equal({kInput, 3, 0}, {mask, rank, 0});
  context.require_equal({kInput, 3, 0}, {past, 5, 1});
  const MaybeShape input = context.shape(0), weights = context.shape(1);
  if (!input || !weights || input->size() != 3 || weights->size() != 2) return;
  const auto* sizes = context.node().ints_attribute("qkv_hidden_sizes");
  const auto value_size =
      sizes && sizes->size() == 3 ? std::optional(Dim(sizes->Get(2))) : exact_quotient((*weights)[1], Dim(3));
  if (value_size) context.set_shape(0, {(*input)[0], (*input)[1], *value_size});
}

void projected_attention(RuleContext& context) { projected_sizes(context, 3, 4); }

/// Input and weights are integers; the results are of the type of the bias.
void quantized_attention(RuleContext& context) {
  constexpr size_t kBias = 2;
  for (const size_t output : {0, 1}) context.set_type(output, context.type(kBias));
  projected_sizes(context, 5, 8);
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

/// Heads of K and V, and their size, that a past of GroupQueryAttention has, unless it is quantized.
void require_heads_of_past(size_t past, RuleContext& context) {
  const int64_t heads = context.node().int_attribute("num_heads", 0),
                kv_heads = context.node().int_attribute("kv_num_heads", 0);
  const MaybeShape query = context.shape(0);
  if (!query.has_rank(3) || heads < 1 || kv_heads < 1 || !is_floating(context.type(past))) return;
  context.require_size(Dim(kv_heads), {past, 4, 1});
  // Keys and values may be packed behind the queries.
  if (const auto size = exact_quotient((*query)[2], Dim(context.has(1) ? heads : heads + 2 * kv_heads)))
    context.require_size(*size, {past, 4, 3});
}

/// Sizes that the inputs of GroupQueryAttention have in common, else ONNX Runtime refuses it.
void require_common_sizes_of_groups(RuleContext& context) {
  constexpr size_t kQuery = 0, kKey = 1, kValue = 2, kPastKey = 3, kPastValue = 4, kLengths = 5, kCos = 7, kSin = 8;
  constexpr size_t kPositions = 9, kBias = 10;
  for (const size_t axis : {0, 1}) {
    for (const size_t input : {kKey, kValue}) context.require_equal({kQuery, 3, axis}, {input, 3, axis});
    context.require_equal({kCos, 2, axis}, {kSin, 2, axis});
  }
  for (const size_t past : {kPastKey, kPastValue}) {
    context.require_equal({kQuery, 3, 0}, {past, 4, 0});
    require_heads_of_past(past, context);
  }
  context.require_equal({kPastKey, 4, 2}, {kPastValue, 4, 2});
  for (const InputAxis batch : {InputAxis{kLengths, 1, 0}, {kLengths, 2, 0}, {kPositions, 2, 0}})
    context.require_equal({kQuery, 3, 0}, batch);
  context.require_equal({kQuery, 3, 1}, {kBias, 4, 2});
  if (const MaybeShape query = context.shape(kQuery); query.has_rank(3)) require_bias_of((*query)[0], kBias, context);
}

/// Query (b, L, hidden) unless keys and values are packed into it.
void group_query_attention(RuleContext& context) {
  require_common_sizes_of_groups(context);
  const MaybeShape query = context.shape(0);
  if (query && context.has(1) && query->size() == 3) context.set_shape(0, *query);
}

/// The shape of input 0, which is known, with so many FEATURES.
void set_features(const Dim& features, RuleContext& context) {
  Shape result = context.shape(0).known();
  result.back() = features;
  context.set_shape(0, std::move(result));
}

/// Weights of few bits: A (…, K) becomes (…, N).
void low_bit_product(RuleContext& context) {
  const MaybeShape shape = context.shape(0);
  const int64_t features = context.node().int_attribute("N", 0);
  if (shape && !shape->empty() && features >= 1) set_features(features, context);
}

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

/// What OP of RULES, ONNX's own, makes.
void apply_as(std::string_view op, std::span<const ShapeRule> rules, RuleContext& context) {
  std::ranges::find(rules, op, &ShapeRule::op)->apply(context);
}

void fused_conv(RuleContext& context) { apply_as("Conv", spatial_rules(), context); }
void fused_gemm(RuleContext& context) { apply_as("Gemm", contraction_rules(), context); }
void product(RuleContext& context) { set_product_shape(context, 0, 1); }

/// Channels lie last: input (N, D1, D2, ..., C), weights (M, D1, D2, ..., C).
void conv_of_last_channels(RuleContext& context) {
  const MaybeShape shape = context.shape(0), weights = context.shape(1);
  if (!shape || shape->size() < 3) return;
  Shape result = context.fresh_shape(0, shape->size());
  result[0] = (*shape)[0];
  if (weights && !weights->empty()) result.back() = (*weights)[0];
  context.set_shape(0, std::move(result));
}

/// Halves the features, of which one half is a gate of the other.
void split_gelu(RuleContext& context) {
  const MaybeShape shape = context.shape(0);
  const auto half = shape && !shape->empty() ? exact_quotient(shape->back(), Dim(2)) : std::nullopt;
  if (half) set_features(*half, context);
}

/// Rows of a table of few bits, which are of the type of its scales.
void gather_of_few_bits(RuleContext& context) { context.set_type(0, context.type(2)); }

/// The scale and the zero point of the result, and an operand, a scale and a zero point by turns.
void quantized_concat(RuleContext& context) {
  constexpr size_t kZeroPoint = 1, kFirst = 2, kOfOne = 3;
  context.set_type(0, context.type(kZeroPoint));
  std::vector<MaybeShape> parts;
  for (size_t i = kFirst; i < context.node().inputs.size(); i += kOfOne) parts.push_back(context.shape(i));
  if (auto joined = joined_shape(parts, context.node().int_attribute("axis", 0), context))
    context.set_shape(0, *std::move(joined));
}

/// Its shape hangs on what is given in a run.
void unsized(RuleContext&) {}

constexpr ShapeRule kContribRules[] = {
    {"Attention", projected_attention},
    {"BiasAdd", like_input_0},
    {"BiasDropout", like_input_0},
    {"BiasGelu", like_input_0},
    {"BiasSplitGelu", split_gelu},
    {"ConvTransposeWithDynamicPads", unsized},
    {"DequantizeLinear", like_input_0, ResultType::kOfInput1},
    {"DynamicQuantizeMatMul", product},
    {"EmbedLayerNormalization", embed_normalization, ResultType::kSetByRule},
    {"ExpandDims", unsized},
    {"FastGelu", like_input_0},
    {"FusedConv", fused_conv},
    {"FusedGemm", fused_gemm},
    {"FusedMatMul", fused_mat_mul},
    {"GatherBlockQuantized", gather_of_few_bits, ResultType::kSetByRule},
    {"Gelu", like_input_0},
    {"GemmFastGelu", product},
    {"GroupNorm", like_input_0},
    {"GroupQueryAttention", group_query_attention},
    {"MatMulBnb4", low_bit_product},
    {"MatMulIntegerToFloat", product_to_float, ResultType::kSetByRule},
    {"MatMulNBits", low_bit_product},
    {"MoE", like_input_0},
    {"MultiHeadAttention", multi_head_attention},
    {"NhwcConv", conv_of_last_channels},
    {"QAttention", quantized_attention, ResultType::kSetByRule},
    {"QLinearAdd", quantized_broadcast},
    {"QLinearConcat", quantized_concat, ResultType::kSetByRule},
    {"QLinearLeakyRelu", like_input_0},
    {"QLinearMul", quantized_broadcast},
    {"QLinearSigmoid", like_input_0},
    {"QLinearSoftmax", like_input_0},
    {"QuantizeLinear", quantize, ResultType::kSetByRule},
    {"QuickGelu", like_input_0},
    {"RotaryEmbedding", like_input_0},
    {"SkipGroupNorm", like_input_0},
    {"SkipLayerNormalization", skip_normalization},
    {"SkipSimplifiedLayerNormalization", skip_normalization},
    {"Trilu", like_input_0},
    {"UnfoldTensor", unsized},
};

}  // namespace

std::span<const ShapeRule> contrib_rules() { return kContribRules; }

}  // namespace attn_opt
