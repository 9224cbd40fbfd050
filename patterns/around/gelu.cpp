// GELU, by erf or by tanh, as Gelu of opset 20.
//
//   erf    0.5 * x * (1 + erf(x / sqrt(2)))
//   tanh   0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
//
// The factors stand in any order and nesting; x^3 is Pow or products, and x may be taken out of the inner sum.
#include "attn_opt/matcher.h"
#include "attn_opt/rewrite.h"

namespace attn_opt {
namespace {

constexpr double kHalf = 0.5, kInverseRoot2 = 0.70710678118654752, kRoot2ByPi = 0.79788456080286536, kCubic = 0.044715;

/// Fits half of X times one more than INNER.
Matcher half_of_one_more(Value** x, const Matcher& inner) {
  return product_near(kHalf, {any(x), commuted("Add", number_near(1), inner)});
}

Matcher by_erf(Value** x) { return half_of_one_more(x, op("Erf", {product_near(kInverseRoot2, {same(x)})})); }

/// Fits TIMES x^2; the number may be a factor of one x.
Matcher times_square(Value** x, double times) {
  return either({product_near(times, {op("Pow", {same(x), number_is(2)})}), product_near(times, {same(x), same(x)})});
}

/// Fits TIMES x^3.
Matcher times_cube(Value** x, double times) {
  return either({product_near(times, {op("Pow", {same(x), number_is(3)})}),
                 product_near(times, {same(x), op("Pow", {same(x), number_is(2)})}),
                 product_near(times, {same(x), same(x), same(x)})});
}

Matcher by_tanh(Value** x) {
  const Matcher sum = commuted("Add", same(x), times_cube(x, kCubic));
  const Matcher quotient = commuted("Add", number_near(1), times_square(x, kCubic));
  const Matcher scaled = commuted("Add", number_near(kRoot2ByPi), times_square(x, kRoot2ByPi * kCubic));
  return half_of_one_more(x, op("Tanh", {either({product_near(kRoot2ByPi, {sum}), product_near(kRoot2ByPi, {same(x), quotient}),
                                                 product_near(1, {same(x), scaled})})}));
}

class Gelu : public Rewrite {
 public:
  std::string_view name() const override { return "gelu"; }
  std::string_view summary() const override { return "x * (1 + erf(x / sqrt(2))) / 2, and its form with tanh, as Gelu"; }
  bool is_anchor(const Node& node) const override { return node.is("Mul") || node.is("Div"); }

  Matched<RewriteMatch> match(const Node& node, RewriteContext& context) const override {
    RewriteMatch match;
    Value& y = *node.outputs[0];
    Value* x = nullptr;
    auto erf = fits(by_erf(&x), y, context.facts, std::string(kNoMatch));
    match.peeled = {"Erf"};
    if (!erf) {
      ATTN_OPT_DONE(fits(by_tanh(&x), y, context.facts, std::string(kNoMatch)));
      match.peeled = {"Tanh"};
    }
    const DataType type = context.facts.type(*x);
    if (type == onnx::TensorProto::DOUBLE)
      return missed("gelu.type", &node, "'" + x->name + "' is of type " + type_name(type), match.peeled);
    match.values = {{"x", x}, {"y", &y}};
    return match;
  }

  Matched<std::vector<Replacement>> apply(const RewriteMatch& match, GraphBuilder& build) const override {
    onnx::AttributeProto approximate;
    approximate.set_name("approximate");
    approximate.set_type(onnx::AttributeProto::STRING);
    approximate.set_s(match.peeled.front() == "Erf" ? "none" : "tanh");
    return std::vector<Replacement>{{match.value("y"), build.node("Gelu", {match.value("x")}, {approximate})}};
  }
};

}  // namespace

ATTN_OPT_REGISTER_REWRITE(Gelu)

}  // namespace attn_opt
