// com.microsoft::MultiHeadAttention.
//
//   before  Q (B, L, H*D) ──────┐                              after  Q ─ Add ─ bias[:H*D] ──┐
//           K (B, S, H*D) ──────┤                                     K ─ Add ─ bias[H*D:] ──┤
//           V (B, S, H*Dv) ─────┤                                     V ─ Add ─ bias[...] ───┤
//           bias ───────────────┼─ MultiHeadAttention ─ Y             mask > 0 ─ Where ──────┼─ Attention(24) ─ Y
//           key_padding_mask ───┤                  └─── present       attention_bias ─ Add ──┤            └──── present
//           attention_bias ─────┤                                     past ──────────────────┘
//           past ───────────────┘
//
// K and V may also be (B, H, S, D), packed into one (B, S, H, 2, D), or with Q into (B, S, H, 3, D).
#include <initializer_list>

#include "patterns/attention_description.h"
#include "patterns/contrib/description.h"
#include "patterns/contrib/operator.h"
#include "patterns/contrib/ranks.h"
#include "src/graph/attention_inputs.h"
#include "src/graph/operator_name.h"

namespace attn_opt {
namespace {

constexpr InputRank kMultiHeadRanks[] = {
    {kMultiHeadBias, "bias", 1},
    {kMultiHeadAttentionBias, "attention_bias", 4},
    {kMultiHeadPastKey, "past_key", 4},
    {kMultiHeadPastValue, "past_value", 4},
};

constexpr int kScoresWithTerms = 2;  // of qk_matmul_output_mode

class MultiHeadAttentionReader {
 public:
  static constexpr std::string_view kName = "contrib_multi_head_attention", kOperator = "MultiHeadAttention";
  static constexpr std::string_view kSummary = "com.microsoft::MultiHeadAttention";

  MultiHeadAttentionReader(Node& node, MatchContext& context)
      : node_(node),
        context_(context),
        facts_(context.facts),
        inner_(node, context),
        heads_(node.int_attribute("num_heads", 0)) {}

  Matched<Match> read() {
    ATTN_OPT_DONE(refuse_buffers());
    if ((node_.input(kMultiHeadPastKey) == nullptr) != (node_.input(kMultiHeadPastValue) == nullptr))
      return missed("multi-head-attention.inputs", &node_, "one of past_key and past_value");
    ATTN_OPT_DONE(check_ranks(node_, kMultiHeadRanks, facts_));
    ATTN_OPT_DONE(read_operands());
    ATTN_OPT_DONE(read_sizes());
    match_.anchor = match_.insert_before = &node_;
    match_.peeled = {operator_name(node_)};
    ATTN_OPT_DONE(describe(match_.sdpa));
    return std::move(match_);
  }

 private:
  Matched<void> refuse_buffers() const {
    if (node_.input(kMultiHeadPastLength) || node_.input(kMultiHeadCacheIndirection))
      return missed("multi-head-attention.shared-buffer", &node_, "past_sequence_length or cache_indirection is given");
    if (!node_.output(kY)) return missed(std::string(kNotAttention), &node_, "");
    return {};
  }

  Matched<MaybeShape> shape_of(size_t input) const {
    const Value* value = node_.input(input);
    const MaybeShape shape = value ? facts_.shape(*value) : nullptr;
    if (!shape) return missed("contrib.rank", &node_, "the rank of input " + std::to_string(input) + " is not known");
    return shape;
  }

  Matched<void> read_operands() {
    ATTN_OPT_MATCH(const MaybeShape query, shape_of(kMultiHeadQuery));
    if (query->size() == 5) {
      ATTN_OPT_DONE(refuse_beside_packed({kMultiHeadKey, kMultiHeadValue, kMultiHeadPastKey, kMultiHeadPastValue}));
      return read_packed({&q_, &k_, &v_}, kMultiHeadQuery);
    }
    ATTN_OPT_MATCH(q_, merged(kMultiHeadQuery));
    ATTN_OPT_MATCH(const MaybeShape key, shape_of(kMultiHeadKey));
    if (key->size() == 5) {
      ATTN_OPT_DONE(refuse_beside_packed({kMultiHeadValue, kMultiHeadBias, kMultiHeadPastKey, kMultiHeadPastValue}));
      return read_packed({&k_, &v_}, kMultiHeadKey);
    }
    if (key->size() == 4) {
      for (auto [view, input] : {std::pair{&k_, kMultiHeadKey}, std::pair{&v_, kMultiHeadValue}}) {
        ATTN_OPT_MATCH(const MaybeShape shape, shape_of(input));
        if (shape->size() != 4 || ((*shape)[1].is_constant() && !(*shape)[1].is(heads_))) return misfit(input, *shape);
        *view = {node_.inputs[input], AxisMap::of(*shape, {Role::kBatch, Role::kHead, Role::kRow, Role::kFeature})};
      }
      return {};
    }
    ATTN_OPT_MATCH(k_, merged(kMultiHeadKey));
    ATTN_OPT_MATCH(v_, merged(kMultiHeadValue));
    return {};
  }

  /// Packed values have no place for INPUTS.
  Matched<void> refuse_beside_packed(std::initializer_list<MultiHeadInput> inputs) const {
    for (const MultiHeadInput input : inputs)
      if (node_.input(input))
        return missed("multi-head-attention.inputs", &node_,
                      "input " + std::to_string(input) + " beside packed keys and values");
    return {};
  }

  /// (B, S, H*D).
  Matched<OperandView> merged(size_t input) const {
    ATTN_OPT_MATCH(const MaybeShape shape, shape_of(input));
    const auto features = shape->size() == 3 && heads_ > 0 ? exact_quotient((*shape)[2], heads_) : std::nullopt;
    if (!features || features->is(0)) return misfit(input, *shape);
    ATTN_OPT_MATCH(AxisMap axes, merged_axes(node_, (*shape)[0], (*shape)[1], heads_, *features));
    return OperandView{node_.inputs[input], std::move(axes)};
  }

  /// The parts of (B, S, H, PARTS, D).
  Matched<void> read_packed(const std::vector<OperandView*>& parts, size_t input) {
    ATTN_OPT_MATCH(const MaybeShape shape, shape_of(input));
    const Shape& dims = *shape;
    if (!dims[2].is(heads_) || !dims[3].is(static_cast<int64_t>(parts.size())) || dims[4].is(0)) return misfit(input, dims);
    const std::vector<Value*> values = inner_.split(node_.inputs[input], std::vector<int64_t>(parts.size(), 1), 3);
    ATTN_OPT_MATCH(const AxisMap merged, merged_axes(node_, dims[0], dims[1], heads_, dims[4]));
    const auto axes = merged.regrouped({dims[0], dims[1], heads_, 1, dims[4]});
    if (!axes) return misfit(input, dims);
    for (size_t i = 0; i < parts.size(); ++i) *parts[i] = {values[i], *axes};
    return {};
  }

  tl::unexpected<Miss> misfit(size_t input, const Shape& shape) const {
    return missed("contrib.shape", &node_, "input " + std::to_string(input) + " of shape " + to_string(shape));
  }

  Matched<void> read_sizes() {
    const Value& query = *node_.inputs[kMultiHeadQuery];
    scores_.type = facts_.type(query);
    scores_.batch = q_.axes.size(Role::kBatch);
    scores_.heads = heads_;
    scores_.queries = q_.axes.size(Role::kRow);
    scores_.new_keys = k_.axes.size(Role::kRow);
    const bool by_heads = k_.axes.rank() == 4;
    scores_.batch_size = inner_.size(*node_.inputs[kMultiHeadQuery], 0);
    scores_.query_count = inner_.size(*node_.inputs[kMultiHeadQuery], 1);
    Value& of_keys = *node_.inputs[node_.input(kMultiHeadKey) ? kMultiHeadKey : kMultiHeadQuery];
    scores_.key_count = inner_.size(of_keys, by_heads ? 2 : 1);
    if (!node_.input(kMultiHeadPastKey)) return {};
    scores_.past = facts_.shape(*node_.inputs[kMultiHeadPastKey]).known()[2];
    scores_.past_count = inner_.size(*node_.inputs[kMultiHeadPastKey], 2);
    scores_.key_count = inner_.sum(scores_.past_count, scores_.key_count);
    return {};
  }

  Matched<void> describe(Sdpa& sdpa) {
    const ContribMasking masking{node_.input(kMultiHeadMask), node_.float_attribute("mask_filter_value", -10000),
                                 node_.int_attribute("unidirectional", 0) == 1, false};
    ATTN_OPT_DONE(add_biases());
    join_caches();
    match_.has_past = node_.input(kMultiHeadPastKey) != nullptr;
    ATTN_OPT_DONE(
        describe_contrib(operands_, masking, node_.input(kMultiHeadAttentionBias), scores_, node_, context_, inner_, sdpa));
    Value* scores = node_.output(kScores);
    if (!scores || scores->unused()) return {};
    if (masking.is_causal)
      return missed("multi-head-attention.scores-output", &node_, "its output qk holds the lowest number for later keys");
    sdpa.scores_output = scores_of_operator(*scores, sdpa, facts_);
    sdpa.scores_output_mode = kScoresWithTerms;
    return {};
  }

  /// The bias is for Q, K and V, one after the other; keys and values by heads have had theirs.
  Matched<void> add_biases() {
    Value* bias = node_.input(kMultiHeadBias);
    if (!bias) return {};
    const Dim q_size = q_.axes.size(Role::kFeature) * Dim(heads_), v_size = v_.axes.size(Role::kFeature) * Dim(heads_);
    if (!q_size.is_constant() || !v_size.is_constant())
      return missed("contrib.shape", &node_, "a bias of " + q_size.str() + " and " + v_size.str() + " numbers");
    const auto parts = inner_.split(bias, {q_size.value(), q_size.value(), v_size.value()}, 0);
    const bool has_new_keys = !node_.input(kMultiHeadKey) || !k_.axes.is_bhsd();
    add(parts[0], q_);
    if (has_new_keys) add(parts[1], k_);
    if (has_new_keys) add(parts[2], v_);
    return {};
  }

  void add(Value* bias, OperandView& view) {
    if (view.axes.rank() == 5) bias = inner_.reshaped(bias, {heads_, 1, view.axes.size(Role::kFeature).value()});
    view.value = inner_.build().node("Add", {view.value, bias});
  }

  /// With a past the node's own presents are the operator's; without one they are K and V by heads.
  void join_caches() {
    for (auto [view, past, present] :
         {std::tuple{&k_, kMultiHeadPastKey, kPresentKey}, std::tuple{&v_, kMultiHeadPastValue, kPresentValue}}) {
      Value* output = node_.output(static_cast<size_t>(present));
      if (output && output->unused()) output = nullptr;
      if (node_.input(kMultiHeadPastKey)) {
        view->past = node_.inputs[past];
        view->present = output;
      } else if (output) {
        match_.copies.push_back({output, by_heads(*view)});
      }
    }
  }

  Value* by_heads(const OperandView& view) {
    if (view.axes.is_bhsd()) return inner_.build().node("Identity", {view.value});
    const Dim features = view.axes.size(Role::kFeature);
    const int64_t size = features.is_constant() ? features.value() : -1;
    return inner_.transposed(inner_.reshaped(view.value, {0, 0, heads_, size}), {0, 2, 1, 3});
  }

  Node& node_;
  MatchContext& context_;
  Facts& facts_;
  InnerValues inner_;
  int64_t heads_;
  Match match_;
  ContribOperands operands_;
  OperandView &q_ = operands_.q, &k_ = operands_.k, &v_ = operands_.v;
  ContribScores scores_;
};

using ContribMultiHeadAttention = ContribOperator<MultiHeadAttentionReader>;

}  // namespace

ATTN_OPT_REGISTER_PATTERN(ContribMultiHeadAttention)

}  // namespace attn_opt
