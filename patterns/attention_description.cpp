#include "patterns/attention_description.h"

#include <cmath>
#include <limits>

#include "patterns/inner_values.h"
#include "patterns/operands/operand_walk.h"
#include "patterns/scores/causal_terms.h"
#include "src/graph/attention_inputs.h"

namespace attn_opt {
namespace {

/// (B, L, H*D) or (B, H, L, D).
std::optional<AxisMap> operand_axes(const Value& value, const char* heads_attribute, const Node& node, Facts& facts) {
  const MaybeShape shape = facts.shape(value);
  if (!shape) return std::nullopt;
  const std::vector<Role> four_axes{Role::kBatch, Role::kHead, Role::kRow, Role::kFeature};
  if (shape->size() == 4) return AxisMap::of(*shape, four_axes);
  const Dim heads = node.int_attribute(heads_attribute, 0);
  if (shape->size() != 3 || heads.is(0)) return std::nullopt;
  const auto features = exact_quotient((*shape)[2], heads);
  if (!features) return std::nullopt;
  return AxisMap::of({(*shape)[0], (*shape)[1], heads, *features}, {Role::kBatch, Role::kRow, Role::kHead, Role::kFeature})
      .regrouped(*shape);
}

/// A causal mask starts at the first key without a past, and behind it with one: no cache may become a past then.
void keep_caches_outside(Operand& operand) {
  std::erase_if(operand.views, [](const OperandView& view) { return view.past != nullptr; });
}

/// Misses that there are too many features to be numbered.
Matched<AxisMap> output_axes(Node& node, const AxisMap& q, const AxisMap& v, MatchContext& context) {
  const Dim batch = q.size(Role::kBatch), heads = q.size(Role::kHead), rows = q.size(Role::kRow);
  const Dim features = v.size(Role::kFeature);
  const bool three = context.facts.shape(*node.inputs[kQ]).known().size() == 3;
  if (!three) return AxisMap::of({batch, heads, rows, features}, {Role::kBatch, Role::kHead, Role::kRow, Role::kFeature});
  auto merged = AxisMap::of({batch, rows, heads, features}, {Role::kBatch, Role::kRow, Role::kHead, Role::kFeature})
                    .regrouped({batch, rows, heads * features});
  if (!merged)
    return missed("attention-node.rank", &node, heads.str() + " heads of " + features.str() + " features are on no one axis");
  return *std::move(merged);
}

/// Without the attribute 1 / sqrt(D).
Matched<double> scale_of(const Node& node, const AxisMap& q) {
  if (const auto* scale = node.attribute("scale")) return scale->f();
  const Dim features = q.size(Role::kFeature);
  if (!features.is_constant() || features.value() <= 0)
    return missed("attention-node.scale", &node, "no scale, and the head size " + features.str() + " is no number");
  return 1 / std::sqrt(static_cast<double>(features.value()));
}

constexpr int kOpsetOfPadding = 24, kOpsetOfWindows = 25;

/// The number of KEYS that MASK lacks, as [0, number]: what Pad is to add to the last axis.
Value* missing_keys(Node& node, Value& mask, const Dim& keys, InnerValues& inner, MatchContext& context) {
  const Dim missing = keys - context.facts.shape(mask).known().back();
  if (missing.is_constant()) return inner.build().ints({0, missing.value()});
  const auto rank = [&](const Value& value) { return static_cast<int64_t>(context.facts.shape(value).known().size()); };
  Value* count = inner.size(*node.inputs[kK], rank(*node.inputs[kK]) - 2);
  if (Value* past = node.input(kPastKey)) count = inner.sum(count, inner.size(*past, 2));
  Value* more = inner.build().node("Sub", {count, inner.size(mask, rank(mask) - 1)});
  return inner.concat({inner.build().ints({0}), more}, 0);
}

/// MASK for all KEYS of NODE: those that it lacks are masked, as the node does with them.
Value* padded_mask(Node& node, Value& mask, const Dim& keys, MatchContext& context) {
  const DataType type = context.facts.type(mask);
  InnerValues inner(node, context);
  GraphBuilder& build = inner.build();
  Value* pads = missing_keys(node, mask, keys, inner, context);
  Value* masks = build.scalar(type == onnx::TensorProto::BOOL ? 0 : -INFINITY, type);
  return build.node("Pad", {&mask, pads, masks, build.ints({-1})});
}

Matched<ScoreTerm> mask_term(Node& node, Value& mask, Sdpa& sdpa, MatchContext& context) {
  const MaybeShape shape = context.facts.shape(mask);
  if (!shape) return missed("attention-node.mask-rank", &node, "the rank of '" + mask.name + "' is not known");
  Dim keys = sdpa.k.views.front().axes.size(Role::kRow);
  if (Value* past = node.input(kPastKey)) {
    const MaybeShape past_shape = context.facts.shape(*past);
    if (!past_shape || past_shape->size() != 4) return missed("attention-node.past-rank", &node, past->name);
    keys = keys + (*past_shape)[2];
  }
  // From opset 24 on a shorter mask is padded with -inf, before a last axis of 1 was broadcast.
  const DataType type = context.facts.type(mask);
  const bool is_short = context.view.onnx_opset(node) >= kOpsetOfPadding && (shape->empty() || shape->back() != keys);
  if (is_short && (shape->empty() || (!is_floating(type) && type != onnx::TensorProto::BOOL)))
    return missed("attention-node.short-mask", &node,
                  type_name(type) + " " + to_string(*shape) + " for " + keys.str() + " keys");
  // A shorter one is legal too.
  if (!shape->empty() && !shape->back().is(1)) sdpa.legal_sizes.emplace_back(shape->back(), keys);
  ScoreTerm term;
  term.value = is_short ? padded_mask(node, mask, keys, context) : &mask;
  term.frame = {sdpa.batch, sdpa.query_heads, sdpa.q.views.front().axes.size(Role::kRow), keys};
  // A mask broadcasts to the scores, and they do not to it.
  for (size_t back = 1; back < std::min(shape->size(), term.frame.size()); ++back)
    if (const Dim& size = (*shape)[shape->size() - 1 - back]; !size.is(1))
      sdpa.legal_sizes.emplace_back(size, term.frame[term.frame.size() - 1 - back]);
  if (type == onnx::TensorProto::BOOL) {
    term.kind = ScoreTerm::Kind::kKeep;
    term.fill = -std::numeric_limits<double>::infinity();
  }
  return term;
}

void read_operands(Node& node, const AttentionOutputs& outputs, const AxisMap& q, const AxisMap& k, const AxisMap& v,
                   MatchContext& context, Sdpa& sdpa) {
  const bool has_past = node.input(kPastKey) && node.input(kPastValue);
  const auto read = [&](size_t input, const AxisMap& axes, size_t past, Value* present) {
    OperandView start{node.inputs[input], axes};
    if (has_past) start.past = node.inputs[past];
    if (has_past) start.present = present;
    return walk_operand(start, context);
  };
  sdpa.q = walk_operand({node.inputs[kQ], q}, context);
  sdpa.k = read(kK, k, kPastKey, outputs.present_key);
  sdpa.v = read(kV, v, kPastValue, outputs.present_value);
  if (!has_past && (sdpa.is_causal || sdpa.left_window || sdpa.right_window)) {
    keep_caches_outside(sdpa.k);
    keep_caches_outside(sdpa.v);
  }
  if (has_past) return;
  for (const auto& [present, operand] : {std::pair(outputs.present_key, &sdpa.k), std::pair(outputs.present_value, &sdpa.v)})
    if (present) sdpa.copies.push_back({present, operand->views.front()});
}

/// -1, the default, leaves that side open.
std::optional<int64_t> window_size(const Node& node, const char* attribute, MatchContext& context) {
  const int64_t size = context.view.onnx_opset(node) >= kOpsetOfWindows ? node.int_attribute(attribute, -1) : -1;
  return size < 0 ? std::nullopt : std::optional(size);
}

}  // namespace

OutputView scores_of_operator(Value& scores, const Sdpa& sdpa, Facts& facts) {
  const MaybeShape shape = facts.shape(scores);
  const Dim queries = sdpa.q.views.front().axes.size(Role::kRow), keys = sdpa.k.views.front().axes.size(Role::kRow);
  const Shape sizes = shape.has_rank(4) ? *shape : Shape{sdpa.batch, sdpa.query_heads, queries, keys};
  return {&scores, AxisMap::of(sizes, {Role::kBatch, Role::kHead, Role::kRow, Role::kFeature})};
}

Matched<Sdpa> describe_attention(Node& node, const AttentionOutputs& outputs, MatchContext& context) {
  Facts& facts = context.facts;
  Sdpa sdpa;
  const auto q = operand_axes(*node.inputs[kQ], "q_num_heads", node, facts);
  const auto k = operand_axes(*node.inputs[kK], "kv_num_heads", node, facts);
  const auto v = operand_axes(*node.inputs[kV], "kv_num_heads", node, facts);
  if (!q || !k || !v) return missed("attention-node.rank", &node, "rank or head count of an input is not known");
  const Dim query_heads = q->size(Role::kHead), heads = k->size(Role::kHead);
  if (query_heads != heads && !(query_heads.is_constant() && heads.is_constant()))
    return missed("attention-node.rank", &node,
                  "how many of " + query_heads.str() + " query heads share one of " + heads.str() + " is not known");
  sdpa.type = facts.type(*node.inputs[kQ]);
  sdpa.batch = q->size(Role::kBatch);
  sdpa.query_heads = q->size(Role::kHead);
  sdpa.is_causal = node.int_attribute("is_causal", 0) != 0;
  sdpa.softcap = node.float_attribute("softcap", 0);
  sdpa.softmax_precision = static_cast<DataType>(node.int_attribute("softmax_precision", 0));
  sdpa.guarded = true;
  sdpa.left_window = window_size(node, "left_window_size", context);
  sdpa.right_window = window_size(node, "right_window_size", context);
  read_operands(node, outputs, *q, *k, *v, context, sdpa);
  ATTN_OPT_MATCH(AxisMap made, output_axes(node, *q, *v, context));
  sdpa.outputs = {{outputs.y, std::move(made)}};
  ATTN_OPT_MATCH(sdpa.scale, scale_of(node, *q));
  if (Value* mask = node.input(kMask)) {
    ATTN_OPT_MATCH(ScoreTerm term, mask_term(node, *mask, sdpa, context));
    sdpa.terms.push_back(std::move(term));
    read_causal_terms(sdpa, context.facts);
  }
  sdpa.nonpad_kv_seqlen = node.input(kNonpad);
  if (outputs.scores) sdpa.scores_output = scores_of_operator(*outputs.scores, sdpa, facts);
  sdpa.scores_output_mode = static_cast<int>(node.int_attribute("qk_matmul_output_mode", 0));
  return sdpa;
}

}  // namespace attn_opt
