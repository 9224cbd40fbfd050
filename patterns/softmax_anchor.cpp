#include "patterns/softmax_anchor.h"

#include <algorithm>
#include <cmath>

#include "attn_opt/canonical.h"
#include "attn_opt/matcher.h"
#include "patterns/addends.h"
#include "patterns/cut_columns.h"
#include "patterns/einsum_product.h"
#include "patterns/exponentials.h"
#include "patterns/form_reader.h"
#include "patterns/inner_values.h"
#include "patterns/layout_checks.h"
#include "patterns/products.h"
#include "patterns/readers.h"
#include "patterns/row_sum.h"
#include "patterns/weights.h"
#include "patterns/written_sinks.h"

namespace attn_opt {
namespace {

/// True if NODE, a Softmax or LogSoftmax, takes the axes from its own on for one, as it did before opset 13.
bool flattens(const Node& node, MatchContext& context) { return context.view.opset(*node.graph) < 13; }

/// True if ONE is the core as it is, or a number.
bool is_hidden_or_core(const ScoreCase& one) { return one.addends.empty() && (one.scale == 0 || (one.scale == 1 && one.number == 0)); }

/// The scores that MASKED, of which a maximum was taken, are where no mask hides them, and these masks; nullopt if they are others.
std::optional<ScoreForm> hidden_in(Value& masked, Value& scores, Node& reader, MatchContext& context) {
  const auto form = FormReader(reader, context).in_terms_of(scores, masked);
  return form && std::ranges::all_of(*form, is_hidden_or_core) ? form : std::nullopt;
}

bool same_cases(const ScoreForm& one, const ScoreForm& other) {
  return std::ranges::equal(one, other, [](const ScoreCase& a, const ScoreCase& b) { return a.guard == b.guard && a.scale == b.scale; });
}

/// True if VALUE is one number for each row, along the axis KEYS before the last, of SCORES.
bool is_one_a_row(const Value& value, const Value& scores, size_t keys, Facts& facts) {
  const MaybeShape own = facts.shape(value), whole = facts.shape(scores);
  return own && whole && own->size() == whole->size() && own->size() > std::max<size_t>(1, keys) && (*own)[own->size() - 1 - keys].is(1);
}

/// The softmax along the axis KEYS before the last whose exponentials are those of POWER, KEPT of which are kept. What each row
/// is less by it does not see. The input is that of the exponentials, without their factor.
SoftmaxSite softmax_of(const Exponent& power, size_t keys, const ScoreForm& kept, Node& reader, MatchContext& context) {
  Facts& facts = context.facts;
  Value& exponent = *power.value;
  SoftmaxSite site{&exponent, nullptr, nullptr, keys, 0.0};
  site.weights = kept;
  Value *scores = nullptr, *lowered_by = nullptr;
  double number_added = 0;
  const Matcher one_a_row = [&](Value& value, Facts&) {
    lowered_by = &value;
    return reduction_of_rows("ReduceMax", &scores, keys)(value, facts) || is_one_a_row(value, *scores, keys, facts);
  };
  if (op("Sub", {any(&scores), number(&number_added)})(exponent, facts)) {
    site.exponent_offset = -number_added * power.factor;
  } else if (commuted("Add", any(&scores), number(&number_added))(exponent, facts)) {
    site.exponent_offset = number_added * power.factor;
  } else if (difference(any(&scores), one_a_row)(exponent, facts)) {
    const bool is_highest = reduction_of_rows("ReduceMax", &scores, keys)(*lowered_by, facts);
    site.lowered_by = lowered_by;
    Value* rows = is_highest ? nullptr : reduced_rows("ReduceMax", *lowered_by, facts.shape(*scores).known().size(), facts, keys);
    const auto hidden = rows ? hidden_in(*rows, *scores, reader, context) : std::nullopt;
    // Scores that are kept may lie far below the largest of all.
    if (power.factor > 0 && (is_highest ? kept.size() == 1 : hidden && same_cases(*hidden, kept))) site.exponent_offset.reset();
  } else {
    return site;
  }
  site.input = scores;
  return site;
}

/// How many axes of TERMS, which READ says, lie behind the one that SUM adds up, of TERMS or of the same in other words.
std::optional<size_t> summed_axis(const RowSum& sum, Value& terms, const Weights& read, bool swapped, Node& node, MatchContext& context) {
  constexpr double kRounding = 1e-6;
  Facts& facts = context.facts;
  const auto axis = axis_in(sum.rows, terms, swapped, facts);
  const std::optional<Weights> summed = axis ? read : weights_in(*sum.rows.value, node, context);
  if (!summed || std::abs(summed->factor * sum.factor / read.factor - 1) > kRounding) return std::nullopt;
  if (axis || !same_cases(read.form, summed->form) || !computes_same(*read.core, *summed->core, facts)) return axis;
  RowReduction rows = sum.rows;
  rows.value = &terms;
  return axis_in(rows, terms, swapped, facts);
}

/// True if a row whose exponents are all -inf, or whose WEIGHTS are all masked, has nothing but 0 in WEIGHTS: what it is less
/// by is a number then.
bool vanish_without_keys(const Weights& weights, const SoftmaxSite& softmax, Facts& facts) {
  if (!softmax.lowered_by || facts.uniform(*softmax.lowered_by)) return true;
  const bool is_of_kept = reduced_axis_of("ReduceMax", *softmax.lowered_by, *softmax.input, facts).has_value();
  double bound = -INFINITY;
  Value& maximum = before_float_casts(*softmax.lowered_by, facts);
  const bool is_bounded = op("Where", {})(maximum, facts) || (commuted("Max", any(), number(&bound))(maximum, facts) && std::isfinite(bound));
  return weights.exponent.factor > 0 && is_of_kept && (is_bounded || weights.form.size() > 1);
}

/// True if what the scores of SOFTMAX are lowered by is the largest of each row and of its sinks.
bool is_largest_beside(const SoftmaxSite& softmax, Facts& facts) {
  Value *maximum = softmax.lowered_by, *largest = nullptr, *sink = nullptr;
  if (!maximum || softmax.sinks.size() != 1) return false;
  for (const bool is_first : {true, false}) {
    Value** const first = is_first ? &largest : &sink;
    Value** const second = is_first ? &sink : &largest;
    if (!op("Max", {any(first), any(second)})(before_float_casts(*maximum, facts), facts) || !reduced_axis_of("ReduceMax", *largest, *softmax.input, facts)) continue;
    const auto number = facts.uniform(*sink);
    return number ? number == facts.uniform(*softmax.sinks[0]) : &unmoved(*sink, facts) == &unmoved(*softmax.sinks[0], facts);
  }
  return op("Relu", {any(&largest)})(*maximum, facts) && facts.uniform(*softmax.sinks[0]) == 0.0 &&
         reduced_axis_of("ReduceMax", *largest, *softmax.input, facts);
}

/// The softmax along the axis KEYS before the last of WEIGHTS of another softmax, divided by their SUM; nullopt if that was taken along
/// another axis, or if the sum may be as small as what is added to it. What was cut off in front of the sum has no share in it.
std::optional<SoftmaxSite> softmax_again(const RowSum& sum, size_t keys, const Weights& weights) {
  SoftmaxSite site = *weights.softmax;
  auto form = substituted(weights.form, site.weights);
  if (site.keys != keys || !form || sum.is_inexact || !sum.others.empty()) return std::nullopt;
  if (site.cut_off && site.weights.size() > 1) return std::nullopt;
  site.weights = *std::move(form);
  site.drops_sinks |= site.cut_off || !site.sinks.empty();
  site.sinks.clear();
  site.guards_empty_rows = sum.is_never_zero;
  site.is_positive = sum.is_positive;
  site.output = nullptr;
  // What is left may be far less than what was cut off, or masked.
  if (site.weights.size() > 1 || site.drops_sinks) site.exponent_offset = site.exponent_offset.value_or(0);
  return site;
}

/// The softmax along the axis KEYS before the last of WEIGHTS, divided by their SUM; nullopt if that may be as small as what is
/// added to it.
std::optional<SoftmaxSite> softmax_over(const RowSum& sum, size_t keys, const Weights& weights, Node& node, MatchContext& context) {
  if (weights.softmax) return softmax_again(sum, keys, weights);
  SoftmaxSite site = softmax_of(weights.exponent, keys, weights.form, node, context);
  if (sum.is_inexact && site.exponent_offset) return std::nullopt;
  site.guards_empty_rows = sum.is_never_zero && vanish_without_keys(weights, site, context.facts);
  const size_t rank = context.facts.shape(*weights.core).known().size();
  for (AddedToSum added : sum.others) {
    added.raised -= std::log(weights.factor / sum.factor);
    const SummedRows rows{rank, rank - 1 - keys, context.facts.type(*sum.rows.value)};
    Value* column = column_of(added, {site.lowered_by, -site.exponent_offset.value_or(0), weights.exponent.factor}, rows, node, context);
    if (!column) return std::nullopt;
    site.sinks.push_back(column);
  }
  if (weights.exponent.factor == 1 && is_largest_beside(site, context.facts)) site.exponent_offset.reset();
  site.input = value_of({site.input, weights.exponent.factor}, node, context);
  // Of a product each factor may leave the range of exp().
  if (weights.exponent.is_product) site.exponent_offset = site.exponent_offset.value_or(0);
  return site;
}

/// What alone is made of MADE, if that leaves of it what WEIGHTS are left of their core, and else 0; null if it does not.
Value* masked_alike(Value& made, const Weights& weights, MatchContext& context) {
  const Readers readers = readers_of(made, context.facts);
  Node* node = readers.only_one() ? readers.all[0].node : nullptr;
  if (!node || node->graph != made.graph || weights.form.size() < 2) return nullptr;
  const auto masked = FormReader(*node, context).in_terms_of(made, *node->outputs[0]);
  const MaybeShape before = context.facts.shape(made), after = context.facts.shape(*node->outputs[0]);
  const bool is_mask = masked && before && after && *before == *after && std::ranges::all_of(*masked, [](const ScoreCase& one) {
    return one.number == 0 && is_hidden_or_core(one);
  });
  return is_mask && same_cases(*masked, weights.form) ? node->outputs[0] : nullptr;
}

/// WHOLE, the input NUMERATOR of NODE, divided by SUM, which is of what a mask leaves of it, and masked behind.
///
///   m * (e / sum(m * e))  =>  (m * e) / sum(m * e)
std::optional<SoftmaxSite> share_masked_late(const RowSum& sum, const Weights& whole, Node& node, MatchContext& context) {
  const auto left = weights_in(*sum.rows.value, node, context);
  if (!left || left->softmax || !computes_same(*left->core, *whole.core, context.facts)) return std::nullopt;
  Value* masked = masked_alike(*node.outputs[0], *left, context);
  const auto keys = masked ? summed_axis(sum, *sum.rows.value, *left, false, node, context) : std::nullopt;
  auto site = keys ? softmax_over(sum, *keys, *left, node, context) : std::nullopt;
  if (site) site->output = masked;
  return site;
}

/// TERMS, which READ says, divided by SUM, of what NODE makes.
std::optional<SoftmaxSite> share(Value& terms, const Weights& read, const RowSum& sum, Node& node, MatchContext& context) {
  const auto keys = summed_axis(sum, terms, read, false, node, context);
  if (keys) return softmax_over(sum, *keys, read, node, context);
  return read.form.size() == 1 ? share_masked_late(sum, read, node, context) : std::nullopt;
}

/// TERMS, the input NUMERATOR of NODE or what that was cut off from, divided by the sum of TERMS.
std::optional<SoftmaxSite> share_of(Value& terms, Node& node, size_t numerator, MatchContext& context) {
  const auto read = weights_in(terms, node, context);
  if (!read) return std::nullopt;
  const auto sum = row_sum(*node.inputs[1 - numerator], !node.is("Div"), context.facts.shape(terms).known().size(), node, context);
  auto site = sum ? share(terms, *read, *sum, node, context) : std::nullopt;
  Value& rest = canonical(*node.inputs[numerator], context.facts);
  if (!site || &rest == &canonical(terms, context.facts)) return site;
  const auto cut = site->cut_off || !site->keys ? std::nullopt : columns_cut_off(*rest.producer, *site->keys, context.facts);
  if (!cut || cut->rest != &rest) return std::nullopt;
  site->cut_off = cut->columns;
  return site;
}

/// Weights, or what is left of them where others are cut off, divided by the sum of all.
std::optional<SoftmaxSite> quotient(Node& node, MatchContext& context) {
  for (const size_t at : {0, 1}) {
    if (node.inputs.size() != 2 || (node.is("Div") && at == 1) || !node.inputs[0] || !node.inputs[1]) return std::nullopt;
    Value& whole = uncut(*node.inputs[at], context.facts);
    auto site = share_of(*node.inputs[at], node, at, context);
    if (!site && &whole != node.inputs[at]) site = share_of(whole, node, at, context);
    if (site) return site;
  }
  return std::nullopt;
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

/// Weights divided by the sum of their absolute values, which is theirs.
std::optional<SoftmaxSite> normalised(Node& node, MatchContext& context) {
  const auto read = node.int_attribute("p", 2) == 1 ? weights_in(*node.inputs[0], node, context) : std::nullopt;
  if (!read) return std::nullopt;
  const int64_t rank = std::ssize(context.facts.shape(*node.inputs[0]).known()), axis = node.int_attribute("axis", -1);
  if (axis < -rank || axis >= rank) return std::nullopt;
  return softmax_over({}, static_cast<size_t>(axis < 0 ? -1 - axis : rank - 1 - axis), *read, node, context);
}

/// Masked exponentials TERMS of PRODUCT, which stands at the input NUMERATOR of NODE, divided by their sum.
std::optional<SoftmaxSite> divided_by_sum_of(Value& terms, Node& node, size_t numerator, MatchContext& context) {
  const auto read = weights_in(terms, node, context);
  if (!read) return std::nullopt;
  const auto sum = row_sum(*node.inputs[1 - numerator], !node.is("Div"), context.facts.shape(terms).known().size(), node, context);
  for (const bool swapped : {false, true}) {
    const auto features = sum ? summed_axis(*sum, terms, *read, swapped, node, context) : std::nullopt;
    if (!features || *features > 1) continue;
    auto site = softmax_over(*sum, swapped ? 1 - *features : *features, *read, node, context);
    if (!site) return std::nullopt;
    site->output = &terms;
    site->sum = sum->rows.node;
    site->divided = node.outputs[0];
    site->features = *features;
    return site;
  }
  return std::nullopt;
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
    Value& terms = uncut(uncast(*operand, is_turned, facts), facts);
    auto site = divided_by_sum_of(terms, node, numerator, context);
    Value* exponential = site ? nullptr : nearest_source(terms, [&](Value& source) { return is_exponential(source, facts); }, facts);
    if (exponential && exponential != &terms) site = divided_by_sum_of(*exponential, node, numerator, context);
    if (!site) continue;
    site->product = product;
    site->swapped = swapped;
    return site;
  }
  return std::nullopt;
}

/// The exponential NODE makes of SCORES less LOWERED_BY, FACTOR times each.
///
///   exp(a - log(t))  =>  exp(a) / t      exp(a - (m + log(t)))  =>  exp(a - m) / t
std::optional<SoftmaxSite> less_logarithm(Value& scores, Value& lowered_by, double factor, Node& node, MatchContext& context) {
  Facts& facts = context.facts;
  const MaybeShape shape = facts.shape(scores);
  if (!shape) return std::nullopt;
  const auto divided = [&](Value* exponent, Value& log) -> std::optional<SoftmaxSite> {
    const auto sum = row_sum_of_log(log, factor, shape->size(), node, context);
    if (!sum) return std::nullopt;
    Value& terms = *(factor == 1 ? InnerValues(node, context).build().node("Exp", {exponent}) : InnerValues(node, context).again(node, 1, exponent));
    const auto read = weights_in(terms, node, context);
    return read ? share(terms, *read, *sum, node, context) : std::nullopt;
  };
  if (auto site = divided(&scores, lowered_by)) return site;
  const std::vector<Value*> addends = addends_of(before_float_casts(lowered_by, facts), facts);
  if (addends.size() != 2) return std::nullopt;
  const auto less = [&](Value* number) { return InnerValues(node, context).build().node("Sub", {&scores, number}); };
  auto site = divided(less(addends[1]), *addends[0]);
  return site ? site : divided(less(addends[0]), *addends[1]);
}

/// Exponentials RESULT of SCORES less LOWERED_BY, the logarithm of sums of those that a mask leaves, which is laid over RESULT.
///
///   m ? exp(x - lse(m ? x : -inf)) : 0  =>  softmax(m ? x : -inf)
std::optional<SoftmaxSite> masked_exponential(Value& scores, Value& lowered_by, Value& result, Node& node, MatchContext& context) {
  const MaybeShape shape = context.facts.shape(scores);
  Value* rows = shape && !shape->empty() ? reduced_rows("ReduceLogSumExp", lowered_by, shape->size(), context.facts) : nullptr;
  const auto hidden = rows ? hidden_in(*rows, scores, node, context) : std::nullopt;
  Value* masked = hidden ? masked_alike(result, {.form = *hidden}, context) : nullptr;
  if (!masked) return std::nullopt;
  SoftmaxSite site{&scores, masked, nullptr, 0, 0.0};
  site.weights = *hidden;
  for (ScoreCase& one : site.weights) one.number = one.scale == 0 ? -INFINITY : 0;
  site.guards_empty_rows = masked->producer->is("Where");
  return site;
}

/// The exponential of logarithms of probabilities.
std::optional<SoftmaxSite> exponential(Node& node, MatchContext& context) {
  Facts& facts = context.facts;
  Value* scores = nullptr;
  Node* normaliser = nullptr;
  Value& result = *node.outputs[0];
  if (op("Exp", {op("LogSoftmax", {any(&scores)}, &normaliser)})(result, facts)) {
    SoftmaxSite site = softmax_operator(*normaliser, context);
    site.output = &result;
    return site;
  }
  const auto exponent = exponent_in(result, node, context);
  std::optional<SoftmaxSite> site;
  const Matcher logarithm = [&](Value& lowered_by, Facts&) {
    const bool is_natural = exponent->factor == 1;
    // The logarithm of a sum rounds as the scores do: what is added to very low scores is lost, as exp() of them is.
    const auto keys = is_natural ? reduced_axis_of("ReduceLogSumExp", lowered_by, *scores, facts) : std::nullopt;
    if (keys) site = SoftmaxSite{scores, nullptr, nullptr, keys, 0.0};
    if (!site && is_natural) site = masked_exponential(*scores, lowered_by, result, node, context);
    if (!site) site = less_logarithm(*scores, lowered_by, exponent->factor, node, context);
    return site.has_value();
  };
  return exponent && difference(any(&scores), logarithm)(*exponent->value, facts) ? site : std::nullopt;
}

/// Where(IS_POSITIVE, SHARES, 0); null if SHARES are read otherwise.
Value* guarded(Value& shares, Value& is_positive, Facts& facts) {
  const Readers readers = readers_of(shares, facts);
  Value* whole = readers.only_one() && readers.all[0].node ? readers.all[0].node->output(0) : nullptr;
  Value *condition = &is_positive, *kept = &shares;
  const bool is_guard = whole && either({op("Where", {same(&condition), same(&kept), number_is(0)}),
                                         op("Where", {op("Not", {same(&condition)}), number_is(0), same(&kept)})})(*whole, facts);
  return is_guard ? whole : nullptr;
}

}  // namespace

SoftmaxSite softmax_operator(Node& node, MatchContext& context) {
  SoftmaxSite site{node.inputs[0], node.outputs[0], &node, std::nullopt, std::nullopt};
  const int64_t axis = node.int_attribute("axis", flattens(node, context) ? 1 : -1);
  const MaybeShape shape = context.facts.shape(*site.input);
  const int64_t rank = shape ? std::ssize(*shape) : 0;
  if (axis < 0 ? !shape || axis >= -rank : axis < rank) site.keys = static_cast<size_t>(axis < 0 ? -1 - axis : rank - 1 - axis);
  return site;
}

std::optional<SoftmaxSite> softmax_at(Node& node, MatchContext& context) {
  if (node.is("Softmax")) return softmax_operator(node, context);
  if (node.is("Einsum")) {
    Value* shares = elementwise_product(node, context);
    auto site = shares ? quotient(*shares->producer, context) : std::nullopt;
    if (site) site->output = node.outputs[0];
    return site;
  }
  const bool is_copy = canonical(*node.outputs[0], context.facts).producer != &node;
  if (is_copy) return std::nullopt;
  auto site = is_exponential(*node.outputs[0], context.facts) ? exponential(node, context) : std::nullopt;
  if (!site && !node.is("Exp") && !node.is("Pow")) site = node.is("LpNormalization") ? normalised(node, context) : quotient(node, context);
  if (site) {
    Value* rows = site->is_positive ? guarded(*node.outputs[0], *site->is_positive, context.facts) : nullptr;
    if (!site->output) site->output = rows ? rows : node.outputs[0];
    site->guards_nan = rows != nullptr;
    return site;
  }
  if (node.is("Div")) return divided_product(node, 0, context);
  if (!node.is("Mul")) return std::nullopt;
  site = divided_product(node, 0, context);
  return site ? site : divided_product(node, 1, context);
}

Matched<void> check_softmax_axis(const SoftmaxSite& softmax, const ScoreLayout& layout, MatchContext& context) {
  if (softmax.keys == 0 && layout.order.empty()) return {};
  const Node* node = softmax.normaliser ? softmax.normaliser : softmax.output->producer;
  const MaybeShape shape = context.facts.shape(*softmax.input);
  if (!shape || !softmax.keys) return missed("softmax.unknown-rank", node, "'" + softmax.input->name + "'");
  const int64_t last = std::ssize(*shape) - 1, own = last - static_cast<int64_t>(*softmax.keys);
  const int64_t keys = layout.order.empty() ? last : layout.order.back();
  // Axes from there on that are taken for one are the same for the last axis.
  const bool is_flattened = softmax.normaliser && flattens(*node, context);
  if (own == keys && (own == last || !is_flattened)) return {};
  if (own == last)
    return missed("product.probabilities-on-wrong-side", node, "the product with V does not sum over the last axis of the softmax");
  return missed("softmax.axis", node, "axis " + std::to_string(own) + " of " + to_string(*shape) + " is not that of the keys");
}

}  // namespace attn_opt
