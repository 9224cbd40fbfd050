// com.microsoft::Attention, which projects its input itself.
//
//   before  X ───────┐                          after  X ─ MatMul ─ Add ─ Split ┬─ Q ───────────────────┐
//           weights ─┤                                 weights, bias            ├─ K ─ Concat ──────────┼─ Attention(24) ─ Y
//           bias ────┼─ Attention ─ Y                  past ─ Split ────────────┼─────┘ │               │
//           mask ────┤          └── present                                     └─ V ─ Concat ──────────┤
//           past ────┘                                 K, V ─ Unsqueeze ─ Concat ─ present              │
//                                                      mask ─ Greater ─ Where ──────────────────────────┘
//
// past and present (2, B, H, rows, D) hold keys and then values.
#include "patterns/contrib/operator.h"
#include "patterns/contrib/projected_reader.h"
#include "patterns/contrib/ranks.h"

namespace attn_opt {
namespace {

constexpr ProjectedInputs kAttentionInputs{.mask = 3, .past = 4, .attention_bias = 5, .past_length = 6, .typed = 0};

constexpr InputRank kAttentionRanks[] = {
    {0, "input", 3, true}, {1, "weights", 2, true}, {2, "bias", 1}, {4, "past", 5}, {5, "attention_bias", 4},
};

class ContribAttentionReader : public ProjectedReader {
 public:
  static constexpr std::string_view kName = "contrib_attention", kOperator = "Attention";
  static constexpr std::string_view kSummary = "com.microsoft::Attention, with its projections";

  ContribAttentionReader(Node& node, MatchContext& context) : ProjectedReader(node, context, kAttentionInputs) {}

 private:
  Matched<void> check_operands() const override { return check_ranks(node_, kAttentionRanks, facts_); }

  Value* project() override {
    Value* product = inner_.build().node("MatMul", {node_.inputs[kX], node_.inputs[kWeights]});
    Value* bias = node_.input(kBias);
    return bias ? inner_.build().node("Add", {product, bias}) : product;
  }
};

using ContribAttention = ContribOperator<ContribAttentionReader>;

}  // namespace

ATTN_OPT_REGISTER_PATTERN(ContribAttention)

}  // namespace attn_opt
