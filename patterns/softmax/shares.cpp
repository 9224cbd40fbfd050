#include "patterns/softmax/shares.h"

#include <algorithm>
#include <cmath>

#include "attn_opt/canonical.h"
#include "attn_opt/matcher.h"
#include "patterns/alike.h"
#include "patterns/inner_values.h"
#include "patterns/readers.h"
#include "patterns/same_number.h"
#include "patterns/scores/form_reader.h"
#include "patterns/softmax/exponentials.h"
#include "patterns/softmax/lowered_scores.h"
#include "patterns/softmax/written_sinks.h"

namespace attn_opt {
namespace {

/// True if ONE is the core as it is, or a number.
bool is_hidden_or_core(const ScoreCase& one) {
  return one.addends.empty() && (one.scale == 0 || (one.scale == 1 && one.number == 0));
}

/// The largest exponential of a row may be exp() of this or its negative where it is taken for 1.
constexpr double kMostRaised = 2;

bool same_cases(const ScoreForm& one, const ScoreForm& other) {
  return std::ranges::equal(one, other,
                            [](const ScoreCase& a, const ScoreCase& b) { return a.guard == b.guard && a.scale == b.scale; });
}

/// True if the cores of ONE and OTHER are the same, in whatever words.
bool are_same_weights(const Weights& one, const Weights& other, Facts& facts) {
  if (computes_same(*one.core, *other.core, facts)) return true;
  const Exponent &power = one.exponent, &twin = other.exponent;
  return power.value && twin.value &&
         compute_same_terms(linear_terms_of(*power.value, power.factor, facts),
                            linear_terms_of(*twin.value, twin.factor, facts), facts);
}

/// True if VALUE, which scores of the shape of SCORES are less by, is one number for several of their rows.
bool is_of_several_rows(const Value& value, const Value& scores, size_t keys, Facts& facts) {
  const MaybeShape own = facts.shape(value), whole = facts.shape(scores);
  if (!own || !whole || own->size() != whole->size()) return true;
  for (size_t axis = 0; axis < own->size(); ++axis)
    if (axis + keys + 1 != own->size() && (*own)[axis] != (*whole)[axis]) return true;
  return false;
}

/// The softmax along the axis KEYS before the last whose exponentials are those of POWER, KEPT of which are kept. What each row
/// is less by it does not see. The input is that of the exponentials, without their factor.
SoftmaxSite softmax_of(const LoweredScores& power, size_t keys, const ScoreForm& kept, Node& reader, MatchContext& context) {
  Facts& facts = context.facts;
  Value* scores = power.scores;
  SoftmaxSite site{scores, nullptr, nullptr, keys, power.number};
  site.weights = kept;
  site.lowered_by = power.lowered_by;
  site.is_unlowered = !site.lowered_by;
  if (site.is_unlowered) return site;
  site.bound = bound_of_maximum(*site.lowered_by, facts.shape(*scores).known().size(), facts);
  site.less_largest_of_all =
      is_of_several_rows(*site.lowered_by, *scores, keys, facts) && scores->producer && is_made_of(*site.lowered_by, *scores);
  const auto is_less = [&](const char* reduction) {
    return reduced_axis_of(reduction, *site.lowered_by, *scores, facts) == keys;
  };
  site.pairs_scores = site.is_less_others = is_less("ReduceMean") || is_less("ReduceMin") || is_less("ReduceSum");
  const bool is_highest = reduction_of_rows("ReduceMax", &scores, keys)(*site.lowered_by, facts);
  Value* rows =
      is_highest ? nullptr : reduced_rows("ReduceMax", *site.lowered_by, facts.shape(*scores).known().size(), facts, keys);
  const auto hidden = rows ? hidden_in(*rows, *scores, reader, context) : std::nullopt;
  // Scores that are kept may lie far below the largest of all.
  const bool is_largest = is_highest ? kept.size() == 1 : hidden && same_cases(*hidden, kept);
  if (power.factor > 0 && (is_highest || is_largest)) site.after_lowering = power.factor;
  if (power.factor > 0 && std::abs(power.number) <= kMostRaised && is_largest) site.exponent_offset.reset();
  return site;
}

/// True if a row whose exponents are all -inf, or whose WEIGHTS are all masked, has nothing but 0 in WEIGHTS: what it is less
/// by is a number then.
bool vanish_without_keys(const Weights& weights, double factor, const SoftmaxSite& softmax, Facts& facts) {
  if (!softmax.lowered_by || facts.uniform(*softmax.lowered_by)) return true;
  const bool is_of_kept = reduced_axis_of("ReduceMax", *softmax.lowered_by, *softmax.input, facts).has_value();
  return factor > 0 && is_of_kept && (std::isfinite(softmax.bound) || weights.form.size() > 1);
}

/// True if what the scores of SOFTMAX are lowered by is the largest of each row and of its sinks.
bool is_largest_beside(const SoftmaxSite& softmax, Facts& facts) {
  Value *maximum = softmax.lowered_by, *largest = nullptr, *sink = nullptr;
  if (!maximum || softmax.sinks.size() != 1) return false;
  for (const bool is_first : {true, false}) {
    Value** const first = is_first ? &largest : &sink;
    Value** const second = is_first ? &sink : &largest;
    if (!op("Max", {any(first), any(second)})(before_float_casts(*maximum, facts), facts) ||
        !reduced_axis_of("ReduceMax", *largest, *softmax.input, facts))
      continue;
    const auto number = facts.uniform(*sink);
    return number ? number == facts.uniform(*softmax.sinks[0]) : &unmoved(*sink, facts) == &unmoved(*softmax.sinks[0], facts);
  }
  return op("Relu", {any(&largest)})(*maximum, facts) && facts.uniform(*softmax.sinks[0]) == 0.0 &&
         reduced_axis_of("ReduceMax", *largest, *softmax.input, facts);
}

/// Enters in SITE what exponents of weights may lie below 0 by until SUM, of what is left of FACTOR times them, is other than
/// that; false where scores of models lie farther apart.
bool limit_range(const RowSum& sum, double factor, SoftmaxSite& site) {
  constexpr double kLeastRange = 9;
  constexpr double kMostShare = 1e-6;  // of a sum, that is not seen in it
  double least = sum.bound;
  if (sum.little) least += sum.little->number * std::exp(sum.little->raised) / kMostShare;
  site.exponent_range = -std::log(least / std::abs(factor / sum.factor));
  return site.exponent_range >= kLeastRange;
}

/// The softmax along the axis KEYS before the last of WEIGHTS of another softmax, divided by their SUM; nullopt if that was
/// taken along another axis, or if the sum is hardly more than what is added to it: it is 1 where nothing was taken away. What
/// was cut off in front of the sum has no share in it.
std::optional<SoftmaxSite> softmax_again(const RowSum& sum, const SummedAxis& keys, const Weights& weights, Facts& facts) {
  SoftmaxSite site = *weights.softmax;
  auto form = substituted(weights.form, site.weights);
  const bool is_one = weights.form.size() == 1 && !site.cut_off && site.sinks.empty() && !site.exponent_offset &&
                      &canonical(*weights.core, facts) == &canonical(*site.output, facts);
  if (site.keys != keys.behind || !form || !sum.others.empty()) return std::nullopt;
  if (site.cut_off && site.weights.size() > 1) return std::nullopt;
  site.weights = *std::move(form);
  site.drops_sinks |= site.cut_off || !site.sinks.empty();
  site.sinks.clear();
  site.guards_empty_rows = sum.is_never_zero;
  site.is_positive = sum.is_positive;
  site.times = keys.times;
  site.output = nullptr;
  // What is left may be far less than what was cut off, or masked.
  if (site.weights.size() > 1 || site.drops_sinks) site.exponent_offset = site.exponent_offset.value_or(0);
  const bool is_narrow = sum.is_inexact && !is_one && !limit_range(sum, weights.factor, site);
  return is_narrow ? std::nullopt : std::optional(std::move(site));
}

/// WHOLE, divided in NODE by SUM, which is of what a mask leaves of it, and masked behind.
///
///   m * (e / sum(m * e))  =>  (m * e) / sum(m * e)
std::optional<SoftmaxSite> share_masked_late(const RowSum& sum, const Weights& whole, Node& node, MatchContext& context) {
  const auto left = weights_in(*sum.rows.value, node, context);
  if (!left || left->softmax || left->factor != whole.factor || !computes_same(*left->core, *whole.core, context.facts))
    return std::nullopt;
  Value* masked = masked_alike(*node.outputs[0], *left, context);
  const auto keys = masked ? summed_axis(sum, *sum.rows.value, *left, false, node, context) : std::nullopt;
  auto site = keys ? softmax_over(sum, *keys, *left, node, context) : std::nullopt;
  if (site) site->output = masked;
  return site;
}

/// True if SUM is a number of times that of its terms, and nothing is added to it or asked of it.
bool is_plain(const RowSum& sum) { return !sum.is_never_zero && sum.others.empty() && !sum.little && sum.bound == 0; }

}  // namespace

std::optional<ScoreForm> hidden_in(Value& masked, Value& scores, Node& reader, MatchContext& context) {
  const auto form = FormReader(reader, context).in_terms_of(scores, masked);
  return form && std::ranges::all_of(*form, is_hidden_or_core) ? form : std::nullopt;
}

std::optional<SummedAxis> summed_axis(const RowSum& sum, Value& terms, const Weights& read, bool swapped, Node& node,
                                      MatchContext& context) {
  Facts& facts = context.facts;
  auto axis = axis_in(sum.rows, terms, swapped, facts);
  const std::optional<Weights> summed = axis ? read : weights_in(*sum.rows.value, node, context);
  if (!summed) return std::nullopt;
  const double factor = sum.is_absolute ? std::abs(summed->factor) : summed->factor;
  const double ratio = read.factor / (factor * sum.factor);
  const bool is_once = std::abs(ratio - 1) <= kSameNumber;
  if (!is_once && !(std::isfinite(ratio) && is_plain(sum))) return std::nullopt;
  // What is below 0 is no part of the sum of what is not.
  if (summed->factor < 0 && !is_plain(sum)) return std::nullopt;
  if (!axis && same_cases(read.form, summed->form) && are_same_weights(read, *summed, facts)) {
    RowReduction rows = sum.rows;
    rows.value = &terms;
    axis = axis_in(rows, terms, swapped, facts);
  }
  return axis ? std::optional<SummedAxis>({*axis, is_once ? 1 : ratio}) : std::nullopt;
}

std::optional<SoftmaxSite> softmax_over(const RowSum& sum, const SummedAxis& keys, const Weights& weights, Node& node,
                                        MatchContext& context) {
  constexpr double kMostPower = 16;  // what higher ones take out of range is verified as if they did not
  if (weights.softmax) return softmax_again(sum, keys, weights, context.facts);
  const LoweredScores power = lowered_scores(weights.exponent, keys.behind, node, context);
  SoftmaxSite site = softmax_of(power, keys.behind, weights.form, node, context);
  site.times = keys.times;
  site.hides_nan = weights.hides_nan;
  if (sum.bound > kMostBound * std::abs(weights.factor / sum.factor)) return std::nullopt;
  const size_t rank = context.facts.shape(*weights.core).known().size();
  const auto add_sink = [&](AddedToSum added) {
    added.raised -= std::log(weights.factor / sum.factor);
    const SummedRows rows{rank, rank - 1 - keys.behind, context.facts.type(*sum.rows.value)};
    Value* column = column_of(added, {site.lowered_by, -power.number, power.factor}, rows, node, context);
    if (column) site.sinks.push_back(column);
    return column != nullptr;
  };
  if (!std::ranges::all_of(sum.others, add_sink)) return std::nullopt;
  // What is as good as nothing beside a largest weight of 1 is a sink beside others, or must stay so.
  const bool may_be_seen = sum.is_inexact && site.exponent_offset;
  const bool is_sink = may_be_seen && sum.little && add_sink(*sum.little);
  if (may_be_seen && !is_sink && !limit_range(sum, weights.factor, site)) return std::nullopt;
  site.guards_empty_rows = sum.is_never_zero && !is_sink && vanish_without_keys(weights, power.factor, site, context.facts);
  const bool covers_sinks = is_largest_beside(site, context.facts);
  if (power.factor == 1 && covers_sinks) site.exponent_offset.reset();
  site.nan_without_keys = site.lowered_by && !covers_sinks && !context.facts.uniform(*site.lowered_by);
  // A half cannot hold the logarithms of most bases.
  if (element_size(context.facts.type(*site.input)) > 2)
    site.input = value_of({site.input, power.factor}, node, context);
  else
    for (ScoreCase& one : site.weights) one.scale *= power.factor;
  site.exponent_power = std::clamp(1 / std::abs(weights.exponent.factor), 1.0, kMostPower);
  // Of a product each factor may leave the range of exp().
  if (weights.exponent.is_product) site.exponent_offset = site.exponent_offset.value_or(0);
  return site;
}

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

std::optional<SoftmaxSite> share(Value& terms, const Weights& read, const RowSum& sum, Node& node, MatchContext& context) {
  const auto keys = summed_axis(sum, terms, read, false, node, context);
  if (keys) return softmax_over(sum, *keys, read, node, context);
  return read.form.size() == 1 ? share_masked_late(sum, read, node, context) : std::nullopt;
}

std::optional<SoftmaxSite> less_logarithm(Value& scores, Value& lowered_by, double factor, Node& node, MatchContext& context) {
  Facts& facts = context.facts;
  const MaybeShape shape = facts.shape(scores);
  if (!shape) return std::nullopt;
  const auto divided = [&](Value* exponent, Value& log) -> std::optional<SoftmaxSite> {
    const auto sum = row_sum_of_log(log, factor, shape->size(), node, context);
    if (!sum) return std::nullopt;
    const Node* log_of = factor == 1 ? canonical(*exponent, facts).producer : nullptr;
    Value* power = value_of({exponent, factor}, node, context);
    Value& terms = *(log_of && log_of->is("Log") ? log_of->inputs[0] : InnerValues(node, context).build().node("Exp", {power}));
    const auto read = weights_in(terms, node, context);
    auto site = read ? share(terms, *read, *sum, node, context) : std::nullopt;
    if (site) site->is_unlowered &= !sum->is_of_exponents;
    if (site) site->is_less_log_sum = true;
    return site;
  };
  if (auto site = divided(&scores, lowered_by)) return site;
  const std::vector<Value*> addends = addends_of(before_float_casts(lowered_by, facts), facts);
  if (addends.size() != 2) return std::nullopt;
  const auto less = [&](Value* number) { return InnerValues(node, context).build().node("Sub", {&scores, number}); };
  auto site = divided(less(addends[1]), *addends[0]);
  if (!site) site = divided(less(addends[0]), *addends[1]);
  // Beside a largest score of a large number the logarithm is lost in the sum of the two.
  if (site) site->exponent_offset = site->exponent_offset.value_or(0);
  return site;
}

}  // namespace attn_opt
