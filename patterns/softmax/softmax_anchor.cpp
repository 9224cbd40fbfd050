#include "patterns/softmax/softmax_anchor.h"

#include <algorithm>
#include <cmath>

#include "attn_opt/canonical.h"
#include "attn_opt/matcher.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/joined_parts.h"
#include "patterns/layout_checks.h"
#include "patterns/probabilities/picked_softmax.h"
#include "patterns/products/cut_columns.h"
#include "patterns/products/product_equation.h"
#include "patterns/products/product_letters.h"
#include "patterns/products/products.h"
#include "patterns/readers.h"
#include "patterns/same_number.h"
#include "patterns/scores/form_reader.h"
#include "patterns/softmax/exponentials.h"
#include "patterns/softmax/late_division.h"
#include "patterns/softmax/lowered_scores.h"
#include "patterns/softmax/pair_sums.h"
#include "patterns/softmax/row_shares.h"
#include "patterns/softmax/row_sum.h"
#include "patterns/softmax/shares.h"
#include "patterns/softmax/softmax_of_parts.h"
#include "patterns/softmax/weights.h"
#include "src/match/node_forms.h"

namespace attn_opt {
namespace {

/// TERMS, the input NUMERATOR of NODE or what that was cut off from, divided by the sum of TERMS.
std::optional<SoftmaxSite> share_of(Value& terms, Node& node, size_t numerator, MatchContext& context) {
  const auto read = weights_in(terms, node, context);
  if (!read) return std::nullopt;
  const auto sum =
      row_sum(*node.inputs[1 - numerator], !node.is("Div"), context.facts.shape(terms).known().size(), node, context);
  auto site = sum ? share(terms, *read, *sum, node, context) : std::nullopt;
  Value& rest = canonical(*node.inputs[numerator], context.facts);
  if (!site || &rest == &canonical(terms, context.facts)) return site;
  const auto cut = site->cut_off || !site->keys ? std::nullopt : columns_cut_off(*rest.producer, *site->keys, context.facts);
  if (!cut || cut->rest != &rest) return std::nullopt;
  site->cut_off = cut->columns;
  return site;
}

/// Weights divided in two steps, of which NODE is the second.
///
///   e / a / b  =>  e / (a * b)      e * a / b  =>  e * (a / b)
std::optional<SoftmaxSite> twice_divided(Node& node, size_t numerator, MatchContext& context) {
  const Node* first = canonical(*node.inputs[numerator], context.facts).producer;
  if (!first || !(first->is("Div") || first->is("Mul")) || !first->input(1)) return std::nullopt;
  for (size_t at = 0; at < (first->is("Div") ? 1U : 2U); ++at) {
    const auto read = weights_in(*first->inputs[at], node, context);
    if (!read) continue;
    InnerValues inner(node, context);
    const bool divides = node.is("Div");
    Value* both =
        inner.build().node(first->is("Div") == divides ? "Mul" : "Div", {node.inputs[1 - numerator], first->inputs[1 - at]});
    const size_t rank = context.facts.shape(*first->inputs[at]).known().size();
    const auto sum = row_sum(*both, !divides, rank, node, context);
    return sum ? share(*first->inputs[at], *read, *sum, node, context) : std::nullopt;
  }
  return std::nullopt;
}

/// Weights, or what is left of them where others are cut off, divided by the sum of all.
std::optional<SoftmaxSite> quotient(Node& node, MatchContext& context) {
  for (const size_t at : {0, 1}) {
    if (node.inputs.size() != 2 || (node.is("Div") && at == 1) || !node.inputs[0] || !node.inputs[1]) return std::nullopt;
    Value& whole = uncut(*node.inputs[at], context.facts);
    auto site = share_of(*node.inputs[at], node, at, context);
    if (!site && &whole != node.inputs[at]) site = share_of(whole, node, at, context);
    if (!site) site = twice_divided(node, at, context);
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
    Value* source = node.is("Cast")        ? &canonical(*node.inputs[0], facts)
                    : node.is("Transpose") ? swapped_from(node, facts)
                                           : nullptr;
    if (!source) break;
    swapped = swapped != node.is("Transpose");
    value = source;
  }
  return *value;
}

/// Weights divided by the sum of their absolute values, which is theirs or has the other sign. What is all 0 stays 0.
std::optional<SoftmaxSite> normalised(Node& node, MatchContext& context) {
  const auto read = node.int_attribute("p", 2) == 1 ? weights_in(*node.inputs[0], node, context) : std::nullopt;
  if (!read) return std::nullopt;
  const int64_t rank = std::ssize(context.facts.shape(*node.inputs[0]).known()), axis = node.int_attribute("axis", -1);
  if (axis < -rank || axis >= rank) return std::nullopt;
  const SummedAxis keys{static_cast<size_t>(axis < 0 ? -1 - axis : rank - 1 - axis), read->factor < 0 ? -1.0 : 1.0};
  RowSum sum;
  sum.is_never_zero = true;
  return softmax_over(sum, keys, *read, node, context);
}

/// Masked exponentials TERMS of PRODUCT, which stands at the input NUMERATOR of NODE, divided by their sum.
std::optional<SoftmaxSite> divided_by_sum_of(Value& terms, Node& node, size_t numerator, MatchContext& context) {
  const auto read = weights_in(terms, node, context);
  if (!read) return std::nullopt;
  const auto sum =
      row_sum(*node.inputs[1 - numerator], !node.is("Div"), context.facts.shape(terms).known().size(), node, context);
  for (const bool swapped : {false, true}) {
    const auto features = sum ? summed_axis(*sum, terms, *read, swapped, node, context) : std::nullopt;
    if (!features || features->behind > 1) continue;
    const SummedAxis keys{swapped ? 1 - features->behind : features->behind, features->times};
    auto site = softmax_over(*sum, keys, *read, node, context);
    if (!site) return std::nullopt;
    site->output = &terms;
    site->sum = sum->rows.node;
    site->divided = node.outputs[0];
    site->features = features->behind;
    return site;
  }
  return std::nullopt;
}

/// The two that PRODUCT multiplies and adds up; none if it is no product of two. Those of an elementwise product as they are
/// before they get the axes that its result has not.
std::vector<Value*> operands_of_product(const Node& product, Facts& facts) {
  const Node* factors = is_product(product) ? nullptr : factors_added_up(product, facts);
  if (!factors && (!is_product(product) || product.inputs.size() != 2)) return {};
  std::vector<Value*> operands = operands_of(product, facts);
  if (!factors || operands.size() != 2) return operands;
  const MaybeShape made = facts.shape(*product.outputs[0]);
  for (Value*& operand : operands) {
    const Node* moved = canonical(*operand, facts).producer;
    const auto has_rank = [&](const Shape& shape) { return made && shape.size() == made->size(); };
    Value* before = moved && has(*moved, Trait::kRegroups) ? before_regroupings(*moved, has_rank, facts) : nullptr;
    if (before) operand = before;
  }
  return operands;
}

/// Exponentials times V, perhaps with a number, divided by their sum: at the input NUMERATOR of NODE.
std::optional<SoftmaxSite> divided_product(Node& node, size_t numerator, MatchContext& context) {
  Facts& facts = context.facts;
  bool swapped = false;
  const Node* product = canonical(*node.inputs[numerator], facts).producer;
  if (product && (product->is("Transpose") || product->is("Cast")))
    product = uncast(*node.inputs[numerator], swapped, facts).producer;
  const auto part = part_of_product(*node.inputs[numerator], node, context);
  if (part) {
    product = part->product;
    swapped = part->lies(true);
    if (!part->values || !(swapped || part->lies(false))) return std::nullopt;
  }
  const std::vector<Value*> operands = product ? operands_of_product(*product, facts) : std::vector<Value*>();
  for (size_t at = 0; at < operands.size(); ++at) {
    if (!operands[at] || (part && part->operand == at)) continue;
    bool is_turned = false;
    Value& terms = uncut(uncast(*operands[at], is_turned, facts), facts);
    auto site = divided_by_sum_of(terms, node, numerator, context);
    Value* exponential =
        site ? nullptr : nearest_source(terms, [&](Value& source) { return is_exponential(source, context); }, facts);
    if (exponential && exponential != &terms) site = divided_by_sum_of(*exponential, node, numerator, context);
    if (!site) continue;
    // V with a column of ones, all of which is divided: the ones are known where they are cut off alone.
    if (site->sum == product && !part) return std::nullopt;
    site->product = product;
    site->swapped = swapped;
    if (part) site->values = part->values;
    if (site->sum == product) site->sum = nullptr;
    return site;
  }
  return std::nullopt;
}

/// Exponentials RESULT of SCORES less LOWERED_BY, the logarithm of sums of those that a mask leaves, which is laid over RESULT.
///
///   m ? exp(x - lse(m ? x : -inf)) : 0  =>  softmax(m ? x : -inf)
std::optional<SoftmaxSite> masked_exponential(Value& scores, Value& lowered_by, Value& result, Node& node,
                                              MatchContext& context) {
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

std::optional<SoftmaxSite> moved_exponential(const Exponent& exponent, Node& node, MatchContext& context);

/// The exponential of logarithms of probabilities, which are moved in between if they MAY_MOVE.
std::optional<SoftmaxSite> exponential(Node& node, MatchContext& context, bool may_move = true) {
  Facts& facts = context.facts;
  Value& result = *node.outputs[0];
  const auto exponent = exponent_in(result, node, context);
  const LoweredScores log = exponent ? lowered_scores(*exponent, 0, node, context) : LoweredScores();
  Node* normaliser =
      log.scores && log.factor == 1 && !log.lowered_by && log.number == 0 ? canonical(*log.scores, facts).producer : nullptr;
  if (normaliser && normaliser->is("LogSoftmax")) {
    SoftmaxSite site = softmax_operator(*normaliser, context);
    site.output = &result;
    return site;
  }
  if (!exponent) return std::nullopt;
  Value* scores = nullptr;
  std::optional<SoftmaxSite> site;
  const auto less = [&](Value& minuend, Value& lowered_by, double factor) {
    const bool is_natural = std::abs(factor - 1) <= kSameNumber;
    // The logarithm of a sum rounds as the scores do: what is added to very low scores is lost, as exp() of them is.
    site = less_logarithm(minuend, lowered_by, is_natural ? 1 : factor, node, context);
    if (!site && is_natural) site = masked_exponential(minuend, lowered_by, result, node, context);
    return site.has_value();
  };
  const Matcher logarithm = [&](Value& lowered_by, Facts&) { return less(*scores, lowered_by, exponent->factor); };
  if (plain_difference(any(&scores), logarithm)(*exponent->value, facts)) return site;
  for (const Difference& found : differences_in(*exponent->value, exponent->factor, facts))
    if (less(*found.minuend, *found.subtrahend, found.factor)) return site;
  return may_move ? moved_exponential(*exponent, node, context) : std::nullopt;
}

/// exp(T(x)), which NODE makes of EXPONENT, T moving axes: T of the softmax that exp(x) is.
std::optional<SoftmaxSite> moved_exponential(const Exponent& exponent, Node& node, MatchContext& context) {
  const Node* move = canonical(*exponent.value, context.facts).producer;
  if (!move || !has(*move, Trait::kKeepsAll)) return std::nullopt;
  InnerValues inner(node, context);
  const Value* plain = inner.build().node("Exp", {value_of({move->inputs[0], exponent.factor}, node, context)});
  auto site = exponential(*plain->producer, context, false);
  return site ? behind_move(*std::move(site), *move, *node.outputs[0], node, context) : std::nullopt;
}

/// Where(IS_POSITIVE, SHARES, 0); null if SHARES are read otherwise.
Value* guarded(Value& shares, Value& is_positive, Facts& facts) {
  const Readers readers = readers_of(shares, facts);
  Value* whole = readers.only_one() && readers.all[0].node ? readers.all[0].node->output(0) : nullptr;
  Value *condition = &is_positive, *kept = &shares;
  const bool is_guard =
      whole && either({op("Where", {same(&condition), same(&kept), number_is(0)}),
                       op("Where", {op("Not", {same(&condition)}), number_is(0), same(&kept)})})(*whole, facts);
  return is_guard ? whole : nullptr;
}

/// True if NODE may end the inverse of a sum: a Reciprocal, an Exp, a Pow, or what divides or multiplies a number.
bool has_inverse(const Node& node, Facts& facts) {
  if (node.is("Reciprocal") || node.is("Exp") || node.is("Pow")) return true;
  const auto is_number = [&](int at) { return node.input(at) && facts.uniform(*node.inputs[static_cast<size_t>(at)]); };
  return (node.is("Div") && is_number(0)) || (node.is("Mul") && (is_number(0) || is_number(1)));
}

constexpr size_t kMostRegroupings = 4;

/// What VALUE is regrouped from, nearest first.
std::vector<Value*> before_regroupings(Value& value, Facts& facts) {
  std::vector<Value*> sources;
  for (Node* node = canonical(value, facts).producer; sources.size() < kMostRegroupings;) {
    if (!node || !has(*node, Trait::kRegroups)) break;
    sources.push_back(node->inputs[0]);
    node = canonical(*sources.back(), facts).producer;
  }
  return sources;
}

/// SOFTMAX, of the operator, as that of scores which are regrouped for it alone.
///
///   Reshape(Softmax(Reshape(x)))  =>  Softmax(x), of x's shape and with the keys in its last axis
SoftmaxSite of_whole_scores(SoftmaxSite softmax, Facts& facts) {
  const MaybeShape rows = facts.shape(*softmax.input);
  const std::vector<Value*> sources =
      softmax.keys == 0 && rows ? before_regroupings(*softmax.input, facts) : std::vector<Value*>();
  const Readers readers = sources.empty() ? Readers() : readers_of(*softmax.output, facts);
  if (!readers.only_one() || readers.all[0].input != 0 || !readers.all[0].node) return softmax;
  for (Value* result : regroupings(*readers.all[0].node, kMostRegroupings, facts))
    for (Value* source : sources) {
      const MaybeShape before = facts.shape(*source), after = facts.shape(*result);
      const bool is_alike = before && after && *before == *after && !before->empty() && before->back() == rows->back();
      if (!is_alike || result->graph != softmax.output->graph) continue;
      softmax.input = source;
      softmax.output = result;
      return softmax;
    }
  return softmax;
}

}  // namespace

bool has_finite_bound(const SoftmaxSite& softmax, Facts& facts) {
  return softmax.bound > lowest_finite(facts.type(*softmax.input));
}

SoftmaxSite softmax_operator(Node& node, MatchContext& context) {
  SoftmaxSite site{node.inputs[0], node.outputs[0], &node, std::nullopt, std::nullopt};
  const int64_t axis = softmax_axis(node);
  const MaybeShape shape = context.facts.shape(*site.input);
  const int64_t rank = shape ? std::ssize(*shape) : 0;
  if (axis < 0 ? !shape || axis >= -rank : axis < rank) site.keys = static_cast<size_t>(axis < 0 ? -1 - axis : rank - 1 - axis);
  const auto only = shape ? only_softmax_axis(node, *shape) : std::nullopt;
  if (only) site.keys = shape->size() - 1 - *only;
  return site;
}

std::optional<SoftmaxSite> behind_move(SoftmaxSite softmax, const Node& move, Value& made, Node& reader,
                                       MatchContext& context) {
  const bool is_plain = softmax.keys && softmax.sinks.empty() && softmax.weights.size() <= 1 && !softmax.lowered_by;
  const auto keys = is_plain ? axis_in_moved(*move.inputs[0], *softmax.keys, *move.outputs[0], context.facts) : std::nullopt;
  if (!keys || softmax.cut_off || softmax.divided) return std::nullopt;
  softmax.input = InnerValues(reader, context).again(move, 0, softmax.input);
  softmax.keys = keys;
  softmax.output = &made;
  return softmax;
}

std::optional<SoftmaxSite> softmax_at(Node& node, MatchContext& context) {
  auto site = multiple_of_softmax_at(node, context);
  return site && site->times == 1 ? site : std::nullopt;
}

std::optional<SoftmaxSite> multiple_of_softmax_at(Node& node, MatchContext& context) {
  if (node.is("Softmax")) return of_whole_scores(softmax_operator(node, context), context.facts);
  if (node.is("Einsum")) {
    Value* shares = elementwise_product(node, context);
    auto site = shares ? multiple_of_softmax_at(*shares->producer, context) : std::nullopt;
    if (site) (site->divided ? site->divided : site->output) = node.outputs[0];
    return site;
  }
  if (node.is("Concat")) return softmax_of_parts(node, context);
  if (node.is("Slice") || node.is("Gather")) return picked_softmax(*node.outputs[0], context);
  const bool is_copy = canonical(*node.outputs[0], context.facts).producer != &node;
  if (is_copy) return std::nullopt;
  auto site = is_exponential(*node.outputs[0], context) ? exponential(node, context) : std::nullopt;
  if (!site && !node.is("Exp") && !node.is("Pow"))
    site = node.is("LpNormalization") ? normalised(node, context) : quotient(node, context);
  if (!site && has_inverse(node, context.facts)) site = softmax_of_pairs(node, context);
  if (site) {
    Value* rows = site->is_positive ? guarded(*node.outputs[0], *site->is_positive, context.facts) : nullptr;
    if (!site->output) site->output = rows ? rows : node.outputs[0];
    site->guards_nan = rows != nullptr;
    return site;
  }
  if (auto shares = softmax_of_rows(node, context)) return shares;
  for (const size_t numerator : {0, 1}) {
    if (node.is("Div") ? numerator == 1 : !node.is("Mul")) break;
    site = divided_product(node, numerator, context);
    if (!site) site = divided_moved_product(node, numerator, context);
    if (site) break;
  }
  return site;
}

Matched<void> check_softmax_axis(const SoftmaxSite& softmax, const ScoreLayout& layout, MatchContext& context) {
  if (softmax.keys == 0 && layout.order.empty()) return {};
  const Node* node = softmax.normaliser ? softmax.normaliser : softmax.output->producer;
  const MaybeShape shape = context.facts.shape(*softmax.input);
  if (!shape || !softmax.keys)
    return missed("softmax.unknown-rank", node, "the rank of '" + softmax.input->name + "' is not known");
  const int64_t last = std::ssize(*shape) - 1, own = last - static_cast<int64_t>(*softmax.keys);
  const int64_t keys = layout.order.empty() ? last : layout.order.back();
  // Axes from there on that are taken for one are the same for the last axis, and where the others are of size 1.
  const bool is_alone = std::all_of(shape->begin() + own + 1, shape->end(), [](const Dim& size) { return size.is(1); });
  const bool is_flattened = softmax.normaliser && flattens(*node) && !is_alone;
  if (own == keys && (own == last || !is_flattened)) return {};
  if (own == last)
    return missed("product.probabilities-on-wrong-side", node,
                  "the product with V does not sum over the last axis of the softmax");
  return missed("softmax.axis", node, "axis " + std::to_string(own) + " of " + to_string(*shape) + " is not that of the keys");
}

}  // namespace attn_opt
