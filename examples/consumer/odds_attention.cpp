// A pattern of one's own: attention whose exponentials are odds of a sigmoid, exp(s) = sigmoid(s) / sigmoid(-s).
//
//   before   q ─────────── MatMul ─ Mul(c) ─ odds ─┬─ Div ─ MatMul ─ y      after   q ─┐
//            k ─ Transpose ┘       ReduceSum(-1) ──┘        │                       k ─┼─ Attention ─ y
//            v ─────────────────────────────────────────────┘                       v ─┘   scale c
#include <attn_opt/attn_opt.h>

namespace {

using namespace attn_opt;

class OddsAttention : public Pattern {
 public:
  std::string_view name() const override { return "odds_attention"; }
  std::string_view summary() const override { return "attention whose exponentials are odds of a sigmoid"; }
  bool is_anchor(const Node& node) const override { return node.is("Div"); }

  Matched<Match> match(Node& anchor, MatchContext& context) const override {
    Value *scores = nullptr, *odds = nullptr, *q = nullptr, *keys = nullptr;
    double scale = 0;
    const Matcher exponentials =
        op("Mul", {op("Sigmoid", {any(&scores)}), op("Reciprocal", {op("Sigmoid", {op("Neg", {same(&scores)})})})});
    const bool divides =
        op("Div", {any(&odds), reduced_over_last("ReduceSum", same(&odds))})(*anchor.outputs[0], context.facts);
    if (!divides || !exponentials(*odds, context.facts)) return missed(std::string(kNotAttention), &anchor, "");
    if (!commuted("Mul", op("MatMul", {any(&q), any(&keys)}), number(&scale))(*scores, context.facts))
      return missed("odds.scores", &anchor, "the exponents are no scaled product");
    const Node* product = product_of(*anchor.outputs[0]);
    if (!product) return missed("odds.product", &anchor, "no product with V behind it, or another reader");

    AttentionParts parts;
    parts.q = {q, "bhsd"};
    parts.k = {keys, "bhds"};
    parts.v = {product->inputs[1], "bhsd"};
    parts.output = {product->outputs[0], "bhsd"};
    parts.scale = scale;
    parts.subtracts_maximum = false;
    parts.peeled = {"Div", "Odds", "Mul(scale)"};
    return match_of(parts, anchor, context);
  }

 private:
  /// The MatMul that alone reads PROBABILITIES, as its first operand.
  static const Node* product_of(const Value& probabilities) {
    if (probabilities.uses.size() != 1 || probabilities.is_output) return nullptr;
    const auto& [node, input] = probabilities.uses[0];
    return node && input == 0 && node->is("MatMul") ? node : nullptr;
  }
};

}  // namespace

ATTN_OPT_REGISTER_PATTERN(OddsAttention)
