// Attention and RotaryEmbedding of ai.onnx. Q (b, hq, L, d) or (b, L, hq*d); K, V likewise with S and kv
// heads.
#include "src/match/shape_rules/shape_rule.h"

namespace attn_opt {
namespace {

/// K or V as (b, heads, S, size).
std::optional<Shape> by_heads(const Shape& shape, int64_t heads) {
  if (shape.size() == 4) return shape;
  if (shape.size() != 3 || heads <= 0) return std::nullopt;
  return Shape{shape[0], heads, shape[1], floor_quotient(shape[2], heads)};
}

/// Batches, lengths and heads that Q, K, V and the past have in common (ONNX Attention-23, shapes of inputs).
void require_common_sizes(RuleContext& context) {
  constexpr size_t kQuery = 0, kKey = 1, kValue = 2, kPastKey = 4, kPastValue = 5, kLengths = 6;
  for (const size_t rank : {3, 4}) {
    context.require_equal({kQuery, rank, 0}, {kLengths, 1, 0});
    for (const size_t input : {kKey, kValue}) context.require_equal({kQuery, rank, 0}, {input, rank, 0});
    for (const size_t past : {kPastKey, kPastValue}) context.require_equal({kQuery, rank, 0}, {past, 4, 0});
    context.require_equal({kKey, rank, rank - 2}, {kValue, rank, rank - 2});
  }
  for (const size_t axis : {1, 2}) context.require_equal({kPastKey, 4, axis}, {kPastValue, 4, axis});
  context.require_equal({kKey, 4, 1}, {kValue, 4, 1});
  context.require_equal({kKey, 4, 1}, {kPastKey, 4, 1});
}

/// A mask of more than one batch element, or query, has all of them (attn_mask broadcasts to (batch, heads, L, total)), and up
/// to opset 23 so do its keys.
void require_mask_of(const Shape& q, const Shape& k, RuleContext& context) {
  constexpr size_t kMask = 3, kPastKey = 4;
  constexpr int kOpsetOfShortMasks = 24;
  const bool has_all_keys = context.opset() < kOpsetOfShortMasks && !context.has(kPastKey);
  context.require_size_or_one(q[0], {kMask, 4, 0});
  for (const size_t rank : {2, 3, 4}) {
    context.require_size_or_one(q[2], {kMask, rank, rank - 2});
    if (has_all_keys) context.require_size_or_one(k[2], {kMask, rank, rank - 1});
  }
}

void attention(RuleContext& context) {
  const Node& node = context.node();
  const MaybeShape q_shape = context.shape(0), k_shape = context.shape(1), v_shape = context.shape(2);
  context.set_type(1, context.type(1));
  context.set_type(2, context.type(2));
  context.set_type(3, context.type(0));
  require_common_sizes(context);
  if (!q_shape || !k_shape || !v_shape) return;
  const int64_t kv_heads = node.int_attribute("kv_num_heads", 0);
  const std::optional<Shape> q = by_heads(*q_shape, node.int_attribute("q_num_heads", 0));
  const std::optional<Shape> k = by_heads(*k_shape, kv_heads), v = by_heads(*v_shape, kv_heads);
  if (!q || !k || !v) return;
  require_mask_of(*q, *k, context);
  if (q_shape->size() == 4) {
    context.set_shape(0, {(*q)[0], (*q)[1], (*q)[2], (*v)[3]});
  } else {
    context.set_shape(0, {(*q)[0], (*q)[2], (*q)[1] * (*v)[3]});
  }
  const auto with_past = [&](const Shape& now, size_t past_input, size_t output) {
    Shape present = now;
    if (!context.has(past_input)) return present;
    const MaybeShape past = context.shape(past_input);
    present[2] = past && past->size() == 4 ? now[2] + (*past)[2] : context.fresh(output, 2);
    return present;
  };
  const Shape present_key = context.wants(1) || context.wants(3) ? with_past(*k, 4, context.wants(1) ? 1 : 3) : *k;
  if (context.wants(1)) context.set_shape(1, present_key);
  if (context.wants(2)) context.set_shape(2, with_past(*v, 5, 2));
  context.set_shape(3, {(*q)[0], (*q)[1], (*q)[2], present_key[2]});
}

constexpr ShapeRule kAttentionRules[] = {
    {"Attention", attention},
    {"RotaryEmbedding", like_input_0},
};

}  // namespace

std::span<const ShapeRule> attention_rules() { return kAttentionRules; }

}  // namespace attn_opt
