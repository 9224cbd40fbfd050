#include "patterns/softmax_anchor.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "attn_opt/canonical.h"
#include "attn_opt/matcher.h"
#include "attn_opt/operator_traits.h"
#include "patterns/form_reader.h"
#include "patterns/layout_checks.h"
#include "patterns/products.h"
#include "patterns/row_reduction.h"

namespace attn_opt {
namespace {

bool is_layout(const Node& node) {
  return has(node, Trait::kMoves) || node.is("Max") || node.is("Clip");
}

/// Nodes that may change nothing, looked through without knowing it.
constexpr int kMaxCopies = 8;

bool is_one_of(const Node& node, std::initializer_list<std::string_view> op_types) {
  return std::ranges::any_of(op_types, [&node](std::string_view op_type) { return node.is(op_type); });
}

bool may_add_nothing(const Node& node) { return has(node, Trait::kAdds) || has(node, Trait::kMultiplies); }

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
    if (node.is("Where")) {
      value = node.input(may_be_number(node.input(1)) ? 2 : 1);
      continue;
    }
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

/// The scores that MASKED, of which a maximum was taken, are where no mask hides them, and these masks; nullopt if they are others.
std::optional<ScoreForm> hidden_in(Value& masked, Value& scores, Node& reader, MatchContext& context) {
  const auto form = FormReader(reader, context).in_terms_of(scores, masked);
  const auto is_hidden_or_score = [](const ScoreCase& one) {
    return one.addends.empty() && (one.scale == 0 || (one.scale == 1 && one.number == 0));
  };
  return form && std::ranges::all_of(*form, is_hidden_or_score) ? form : std::nullopt;
}

bool same_cases(const ScoreForm& one, const ScoreForm& other) {
  return std::ranges::equal(one, other, [](const ScoreCase& a, const ScoreCase& b) { return a.guard == b.guard && a.scale == b.scale; });
}

/// True if VALUE is one number for each row of SCORES.
bool is_one_a_row(const Value& value, const Value& scores, Facts& facts) {
  const MaybeShape own = facts.shape(value), whole = facts.shape(scores);
  return own && whole && own->size() == whole->size() && own->size() > 1 && own->back().is(1);
}

/// The softmax whose exponentials are those of EXPONENT, WEIGHTS of which are kept. What each row is less by it does not see.
SoftmaxSite softmax_of(Value& exponent, const ScoreForm& weights, Node& reader, MatchContext& context) {
  Facts& facts = context.facts;
  SoftmaxSite site{&exponent, nullptr, nullptr, 0.0};
  site.weights = weights;
  Value *scores = nullptr, *lowered = nullptr;
  double number_added = 0;
  const Matcher highest = reduction_of_rows("ReduceMax", &scores);
  if (difference(any(&scores), highest)(exponent, facts)) {
    // Scores that are kept may lie far below the largest of all.
    if (weights.size() == 1) site.exponent_offset.reset();
  } else if (op("Sub", {any(&scores), number(&number_added)})(exponent, facts)) {
    site.exponent_offset = -number_added;
  } else if (commuted("Add", any(&scores), number(&number_added))(exponent, facts)) {
    site.exponent_offset = number_added;
  } else if (difference(any(&scores), any(&lowered))(exponent, facts) && is_one_a_row(*lowered, *scores, facts)) {
    Value* rows = reduced_rows("ReduceMax", *lowered, facts.shape(*scores).known().size(), facts);
    const auto hidden = rows ? hidden_in(*rows, *scores, reader, context) : std::nullopt;
    if (hidden && same_cases(*hidden, weights)) site.exponent_offset.reset();
  } else {
    return site;
  }
  site.input = scores;
  return site;
}

/// What exponentials have that WEIGHTS, made of them, are where they are not 0: scores, and -inf. Nullopt if they are more.
std::optional<ScoreForm> masked_scores(const ScoreForm& weights) {
  ScoreForm scores;
  double scale = 0;
  for (const ScoreCase& one : weights) {
    if (one.number != 0 || !one.addends.empty()) return std::nullopt;
    if (one.scale != 0 && scale != 0 && one.scale != scale) return std::nullopt;
    scale = one.scale != 0 ? one.scale : scale;
    scores.push_back({one.guard, one.scale != 0 ? 1.0 : 0.0, one.scale != 0 ? 0.0 : -INFINITY});
  }
  return scale > 0 ? std::optional(scores) : std::nullopt;
}

bool is_exponential(Value& value) { return value.producer && value.producer->is("Exp"); }

/// NUMERATOR, made elementwise of exponentials, divided by its sum.
std::optional<SoftmaxSite> quotient_of(Value& numerator, Node& node, MatchContext& context) {
  Facts& facts = context.facts;
  Value* exponential = nearest_source(numerator, is_exponential, facts);
  if (!exponential) return std::nullopt;
  auto weights = FormReader(node, context).in_terms_of(*exponential, numerator);
  weights = weights ? masked_scores(*weights) : std::nullopt;
  const MaybeShape before = facts.shape(*exponential), after = facts.shape(numerator);
  if (!weights || !before || !after || *before != *after) return std::nullopt;
  return softmax_of(*exponential->producer->inputs[0], *weights, node, context);
}

/// Exponentials divided by their sum.
std::optional<SoftmaxSite> quotient(Node& node, MatchContext& context) {
  Value* numerator = nullptr;
  const Matcher sum = reduction_of_rows("ReduceSum", &numerator);
  const Matcher reciprocal = in_each_row(op("Reciprocal", {sum}));
  for (const size_t at : {0, 1}) {
    if (node.inputs.size() != 2 || (node.is("Div") && at == 1) || !node.inputs[0] || !node.inputs[1]) return std::nullopt;
    numerator = node.inputs[at];
    if ((node.is("Div") ? sum : reciprocal)(*node.inputs[1 - at], context.facts)) return quotient_of(*numerator, node, context);
  }
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

/// The exponentials that VALUE is another number times; null if it is none.
Value* scaled_exponential(Value& value, Node& reader, MatchContext& context) {
  if (is_exponential(value)) return nullptr;
  Value* exponential = nearest_source(value, is_exponential, context.facts);
  if (!exponential) return nullptr;
  const auto form = FormReader(reader, context).in_terms_of(*exponential, value);
  return form && is_scale(*form) ? exponential : nullptr;
}

/// Exponentials times V, perhaps with a number, divided by their sum: at the input NUMERATOR of NODE.
std::optional<SoftmaxSite> divided_product(Node& node, size_t numerator, MatchContext& context) {
  Facts& facts = context.facts;
  bool swapped = false;
  const Node* product = canonical(*node.inputs[numerator], facts).producer;
  if (product && product->is("Transpose")) product = uncast(*node.inputs[numerator], swapped, facts).producer;
  if (!product || !is_product(*product) || product->inputs.size() != 2) return std::nullopt;
  for (Value* operand : product->inputs) {
    if (!operand) continue;
    bool is_turned = false;
    Value *exponent = nullptr, *exponential = &uncast(*operand, is_turned, facts);
    Value* scaled = scaled_exponential(*exponential, node, context);
    if (scaled) exponential = scaled;
    if (!op("Exp", {any(&exponent)})(*exponential, facts)) continue;
    const Node* sum = nullptr;
    Value* also = is_turned || scaled ? exponential : operand;
    const Matcher total = total_of_row(either({same(&exponential), same(&also)}), &exponential, &sum);
    if (!(node.is("Div") ? total : op("Reciprocal", {total}))(*node.inputs[1 - numerator], facts)) continue;
    SoftmaxSite site = softmax_of(*exponent, core_form(), node, context);
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
std::optional<SoftmaxSite> exponential(Node& node, MatchContext& context) {
  Facts& facts = context.facts;
  Value *scores = nullptr, *exponent = nullptr;
  Node* normaliser = nullptr;
  const Matcher log_sum = in_each_row(op("Log", {row_sum(op("Exp", {same(&exponent)}))}));
  const Matcher log_sum_exp = in_each_row(reduced_over_last("ReduceLogSumExp", same(&scores)));
  Value& result = *node.outputs[0];
  if (op("Exp", {op("LogSoftmax", {any(&scores)}, &normaliser)})(result, facts))
    return SoftmaxSite{scores, nullptr, normaliser, std::nullopt};
  if (op("Exp", {difference(any(&exponent), log_sum)})(result, facts)) return softmax_of(*exponent, core_form(), node, context);
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
  if (node.is("Div")) return made_by(first, {"Exp"}) || made_by(second, {"ReduceSum"});
  if (node.is("Exp")) return made_by(first, {"LogSoftmax", "Sub", "Add"});
  if (!node.is("Mul")) return false;
  return made_by(first, {"Exp"}) || made_by(second, {"Exp"}) || multiplies_product(first, second) || multiplies_product(second, first);
}

std::optional<SoftmaxSite> softmax_at(Node& node, MatchContext& context) {
  if (node.is("Softmax")) return SoftmaxSite{node.inputs[0], node.outputs[0], &node, std::nullopt};
  const bool is_copy = canonical(*node.outputs[0], context.facts).producer != &node;
  if (is_copy) return std::nullopt;
  auto site = node.is("Exp") ? exponential(node, context) : quotient(node, context);
  if (site) {
    site->output = node.outputs[0];
    return site;
  }
  if (node.is("Div")) return divided_product(node, 0, context);
  if (!node.is("Mul")) return std::nullopt;
  site = divided_product(node, 0, context);
  return site ? site : divided_product(node, 1, context);
}

size_t keys_before_last(const SoftmaxSite& softmax, MatchContext& context) {
  const Node* node = softmax.normaliser;
  const MaybeShape shape = context.facts.shape(*softmax.output);
  if (!node || !shape || context.view.opset(*node->graph) < 13) return 0;
  const int64_t axis = node->int_attribute("axis", -1), rank = std::ssize(*shape), own = axis < 0 ? axis + rank : axis;
  return own < 0 || own >= rank ? 0 : static_cast<size_t>(rank - 1 - own);
}

const Node* unread_sum(const Node& node, Facts& facts) {
  if (!node.is("Div") || node.inputs.size() != 2 || !node.inputs[1]) return nullptr;
  // What stands between the exponentials and their sum, or between the sum and the division, is what could not be read.
  constexpr size_t kMaxValues = 32;
  std::vector<Value*> values{node.inputs[1]};
  const Node* sum = nullptr;
  for (size_t i = 0; i < values.size() && values.size() < kMaxValues; ++i) {
    const Node* maker = canonical(*values[i], facts).producer;
    if (!maker || !maker->domain().empty()) continue;
    if (maker->is("Exp") && sum) return sum;
    const bool is_sum = maker->is("ReduceSum");
    if (!is_sum && form_operands(*maker).empty() && !is_layout(*maker)) continue;
    if (is_sum) sum = maker;
    const std::vector<size_t> followed = form_operands(*maker);
    if (followed.empty()) values.push_back(maker->inputs[0]);
    for (const size_t operand : followed)
      if (Value* input = maker->input(static_cast<int>(operand))) values.push_back(input);
  }
  return nullptr;
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
