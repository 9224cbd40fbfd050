#include "patterns/softmax_anchor.h"

#include <algorithm>
#include <initializer_list>

#include "attn_opt/canonical.h"
#include "attn_opt/matcher.h"
#include "patterns/layout_checks.h"
#include "patterns/products.h"
#include "patterns/row_reduction.h"

namespace attn_opt {
namespace {

/// Nodes that may change nothing, looked through without knowing it.
constexpr int kMaxCopies = 8;

bool is_one_of(const Node& node, std::initializer_list<std::string_view> op_types) {
  return std::ranges::any_of(op_types, [&node](std::string_view op_type) { return node.is(op_type); });
}

bool may_add_nothing(const Node& node) { return is_one_of(node, {"Add", "Sub", "Mul", "Div"}); }

/// True if VALUE is an initializer or an input, or may be a copy of one or a number computed from some.
bool may_be_number(const Value* value, int steps = kMaxCopies) {
  for (; steps > 0 && value; --steps) {
    if (!value->producer || is_one_of(*value->producer, {"Constant", "ConstantOfShape"})) return true;
    const Node& node = *value->producer;
    if (!may_be_no_op(node) || (may_add_nothing(node) && !may_be_number(node.input(1), steps / 2))) return false;
    value = node.input(0);
  }
  return false;
}

/// True if VALUE is what an OP_TYPE makes, or may be a copy of that.
bool made_by(const Value* value, std::initializer_list<std::string_view> op_types) {
  for (int step = 0; step < kMaxCopies && value && value->producer; ++step) {
    const Node& node = *value->producer;
    if (is_one_of(node, op_types)) return true;
    if (!may_be_no_op(node)) return false;
    value = node.input(may_add_nothing(node) && may_be_number(node.input(0)) ? 1 : 0);
  }
  return false;
}

bool divides_product(const Value* product, const Value* sum) {
  return made_by(product, {"MatMul", "Einsum", "Transpose"}) && made_by(sum, {"ReduceSum", "MatMul"});
}

bool multiplies_product(const Value* product, const Value* reciprocal) {
  return made_by(product, {"MatMul", "Einsum", "Transpose"}) && made_by(reciprocal, {"Reciprocal"});
}

/// Fits what MATCHER fits, also repeated along each row.
Matcher in_each_row(const Matcher& matcher) { return either({matcher, op("Expand", {matcher})}); }

Matcher row_sum(const Matcher& terms) { return in_each_row(reduced_over_last("ReduceSum", terms)); }

/// Fits MINUEND - SUBTRAHEND, also as a sum with the negative.
Matcher difference(const Matcher& minuend, const Matcher& subtrahend) {
  const Matcher negative_first = [=](Value& value, Facts& facts) {
    Value *negative = nullptr, *other = nullptr;
    return op("Add", {any(&negative), any(&other)})(value, facts) && minuend(*other, facts) &&
           op("Neg", {subtrahend})(*negative, facts);
  };
  return either({op("Sub", {minuend, subtrahend}), op("Add", {minuend, op("Neg", {subtrahend})}), negative_first});
}

/// The softmax whose exponentials are Exp(EXPONENT).
SoftmaxSite softmax_of(Value& exponent, Facts& facts) {
  SoftmaxSite site{&exponent, nullptr, nullptr, 0.0};
  Value* scores = nullptr;
  double number_added = 0;
  const Matcher highest = reduction_of_rows("ReduceMax", &scores);
  if (difference(any(&scores), highest)(exponent, facts)) {
    site.exponent_offset.reset();
  } else if (op("Sub", {any(&scores), number(&number_added)})(exponent, facts)) {
    site.exponent_offset = -number_added;
  } else if (commuted("Add", any(&scores), number(&number_added))(exponent, facts)) {
    site.exponent_offset = number_added;
  } else {
    return site;
  }
  site.input = scores;
  return site;
}

/// Exponentials divided by their sum.
std::optional<SoftmaxSite> quotient(Node& node, Facts& facts) {
  Value *exponent = nullptr, *exponential = nullptr;
  const Matcher exp = op("Exp", {any(&exponent)});
  const Matcher numerator = [&](Value& value, Facts& f) {
    exponential = &value;
    return exp(value, f);
  };
  const Matcher sum = reduction_of_rows("ReduceSum", &exponential);
  const Matcher reciprocal = in_each_row(op("Reciprocal", {sum}));
  Value& result = *node.outputs[0];
  if (op("Div", {numerator, sum})(result, facts) || op("Mul", {numerator, reciprocal})(result, facts) ||
      (node.is("Mul") && numerator(*node.inputs[1], facts) && reciprocal(*node.inputs[0], facts)))
    return softmax_of(*exponent, facts);
  return std::nullopt;
}

/// Fits the sum of each row of TERMS, or of what ROWS holds by then, one number in the place of the keys, and captures what
/// adds them up.
Matcher total_of_row(const Matcher& terms, Value* const* rows, const Node** sum) {
  return [=](Value& value, Facts& facts) {
    const Value& seen = canonical(value, facts);
    const MaybeShape shape = facts.shape(seen);
    const Matcher times_ones = op("MatMul", {terms, number_is(1)});
    const bool is_one_a_row = shape && !shape->empty() && shape->back().is(1);
    *sum = seen.producer;
    if (reduced_over_last("ReduceSum", terms)(value, facts) || (is_one_a_row && times_ones(value, facts))) return true;
    return is_one_a_row && reduction_of_rows("ReduceSum", rows, sum)(value, facts);
  };
}

/// What OPERAND is a cast of, or its last two axes swapped; sets SWAPPED if they are.
Value& uncast(Value& operand, bool& swapped, Facts& facts) {
  constexpr int kMaxLayers = 3;
  Value* value = &canonical(operand, facts);
  for (int layer = 0; layer < kMaxLayers && value->producer; ++layer) {
    Node& node = *value->producer;
    Value* source = node.is("Cast") ? &canonical(*node.inputs[0], facts) : node.is("Transpose") ? swapped_from(node, facts) : nullptr;
    if (!source) break;
    swapped = swapped != node.is("Transpose");
    value = source;
  }
  return *value;
}

/// Exponentials times V, divided by their sum: at the input NUMERATOR of NODE.
std::optional<SoftmaxSite> divided_product(Node& node, size_t numerator, Facts& facts) {
  bool swapped = false;
  const Node* product = canonical(*node.inputs[numerator], facts).producer;
  if (product && product->is("Transpose")) product = uncast(*node.inputs[numerator], swapped, facts).producer;
  if (!product || !is_product(*product) || product->inputs.size() != 2) return std::nullopt;
  for (Value* operand : product->inputs) {
    if (!operand) continue;
    bool is_turned = false;
    Value *exponent = nullptr, *exponential = &uncast(*operand, is_turned, facts);
    if (!op("Exp", {any(&exponent)})(*exponential, facts)) continue;
    const Node* sum = nullptr;
    Value* also = is_turned ? exponential : operand;
    const Matcher total = total_of_row(either({same(&exponential), same(&also)}), &exponential, &sum);
    if (!(node.is("Div") ? total : op("Reciprocal", {total}))(*node.inputs[1 - numerator], facts)) continue;
    SoftmaxSite site = softmax_of(*exponent, facts);
    site.output = exponential;
    site.sum = sum;
    site.product = product;
    site.divided = node.outputs[0];
    site.swapped = swapped;
    return site;
  }
  return std::nullopt;
}

/// The exponential of logarithms of probabilities.
std::optional<SoftmaxSite> exponential(Node& node, Facts& facts) {
  Value *scores = nullptr, *exponent = nullptr;
  Node* normaliser = nullptr;
  const Matcher log_sum = in_each_row(op("Log", {row_sum(op("Exp", {same(&exponent)}))}));
  const Matcher log_sum_exp = in_each_row(reduced_over_last("ReduceLogSumExp", same(&scores)));
  Value& result = *node.outputs[0];
  if (op("Exp", {op("LogSoftmax", {any(&scores)}, &normaliser)})(result, facts))
    return SoftmaxSite{scores, nullptr, normaliser, std::nullopt};
  if (op("Exp", {difference(any(&exponent), log_sum)})(result, facts)) return softmax_of(*exponent, facts);
  // The logarithm of a sum rounds as the scores do: what is added to very low scores is lost, as exp() of them is.
  if (op("Exp", {difference(any(&scores), log_sum_exp)})(result, facts))
    return SoftmaxSite{scores, nullptr, nullptr, 0.0};
  return std::nullopt;
}

}  // namespace

bool may_be_softmax(const Node& node) {
  const Value *first = node.input(0), *second = node.input(1);
  if (node.is("Softmax")) return true;
  if (node.is("Div") && divides_product(first, second)) return true;
  if (node.is("Div")) return made_by(first, {"Exp"});
  if (node.is("Exp")) return made_by(first, {"LogSoftmax", "Sub", "Add"});
  if (!node.is("Mul")) return false;
  return made_by(first, {"Exp"}) || made_by(second, {"Exp"}) || multiplies_product(first, second) || multiplies_product(second, first);
}

std::optional<SoftmaxSite> softmax_at(Node& node, Facts& facts) {
  if (node.is("Softmax")) return SoftmaxSite{node.inputs[0], node.outputs[0], &node, std::nullopt};
  const bool is_copy = canonical(*node.outputs[0], facts).producer != &node;
  if (is_copy) return std::nullopt;
  auto site = node.is("Exp") ? exponential(node, facts) : quotient(node, facts);
  if (site) {
    site->output = node.outputs[0];
    return site;
  }
  if (node.is("Div")) return divided_product(node, 0, facts);
  if (!node.is("Mul")) return std::nullopt;
  site = divided_product(node, 0, facts);
  return site ? site : divided_product(node, 1, facts);
}

Matched<void> check_softmax_axis(const SoftmaxSite& softmax, const ScoreLayout& layout, MatchContext& context) {
  const Node* node = softmax.normaliser;
  // Before opset 13 the default was 1 and the axes from there on were flattened: for the last axis that is the same.
  const bool flattens = node && context.view.opset(*node->graph) < 13;
  const int64_t axis = node ? node->int_attribute("axis", flattens ? 1 : -1) : -1;
  if (axis == -1 && layout.order.empty()) return {};
  const MaybeShape shape = context.facts.shape(*softmax.input);
  if (!shape) return missed("softmax.unknown-rank", node, "axis " + std::to_string(axis) + " of '" + softmax.input->name + "'");
  const int64_t rank = std::ssize(*shape), own = axis < 0 ? axis + rank : axis;
  const int64_t keys = layout.order.empty() ? rank - 1 : layout.order.back();
  if (own == keys && (own == rank - 1 || !flattens)) return {};
  if (own == rank - 1)
    return missed("product.probabilities-on-wrong-side", node, "the product with V does not sum over the last axis of the softmax");
  return missed("softmax.axis", node, "axis " + std::to_string(axis) + " of " + to_string(*shape) + " is not that of the keys");
}

}  // namespace attn_opt
