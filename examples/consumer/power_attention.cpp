// A pattern of one's own: attention whose softmax is written with powers of 2, and the factor log2(e) in the scale.
//
//   before   q ─────────── MatMul ─ Mul(c) ─ Pow(2, .) ─┬─ Div ─ MatMul ─ y      after   q ─┐
//            k ─ Transpose ┘            ReduceSum(-1) ──┘        │                       k ─┼─ Attention ─ y
//            v ──────────────────────────────────────────────────┘                       v ─┘   scale c * ln(2)
#include <attn_opt/attn_opt.h>

#include <cmath>

namespace {

using namespace attn_opt;

class PowerAttention : public Pattern {
 public:
  std::string_view name() const override { return "power_attention"; }
  std::string_view summary() const override { return "attention whose softmax is a power of 2"; }
  bool is_anchor(const Node& node) const override { return node.is("Div"); }

  Matched<Match> match(Node& anchor, MatchContext& context) const override {
    Value *scores = nullptr, *powers = nullptr, *q = nullptr, *keys = nullptr;
    double scale = 0;
    const Matcher exponents = op("Pow", {number_is(2), any(&scores)});
    const bool divides = op("Div", {any(&powers), reduced_over_last("ReduceSum", same(&powers))})(*anchor.outputs[0], context.facts);
    if (!divides || !exponents(*powers, context.facts)) return missed(std::string(kNotAttention), &anchor, "");
    if (!commuted("Mul", op("MatMul", {any(&q), any(&keys)}), number(&scale))(*scores, context.facts))
      return missed("power.scores", &anchor, "the exponents are no scaled product");
    const Node* product = product_of(*anchor.outputs[0]);
    if (!product) return missed("power.product", &anchor, "no product with V behind it, or another reader");

    AttentionParts parts;
    parts.q = {q, "bhsd"};
    parts.k = {keys, "bhds"};
    parts.v = {product->inputs[1], "bhsd"};
    parts.output = {product->outputs[0], "bhsd"};
    parts.scale = scale * std::log(2.0);
    parts.subtracts_maximum = false;
    parts.peeled = {"Div", "Pow(2)", "Mul(scale)"};
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

ATTN_OPT_REGISTER_PATTERN(PowerAttention)
