#include "patterns/softmax/sink_gate.h"

#include <algorithm>

#include "attn_opt/canonical.h"
#include "attn_opt/matcher.h"
#include "patterns/operands/operand_walk.h"
#include "patterns/probabilities/factor_maps.h"
#include "patterns/readers.h"
#include "patterns/softmax/exponentials.h"
#include "patterns/softmax/row_sum.h"

namespace attn_opt {
namespace {

/// Values looked at behind a product for what multiplies it.
constexpr size_t kMaxSearchedForGate = 16;

/// True where the softmax is the operator, and nothing is done to its result but moves.
bool is_plain(const SoftmaxSite& softmax, const ProbabilityWalk& walk) {
  return softmax.normaliser && softmax.normaliser->is("Softmax") && softmax.keys && !softmax.cut_off && !walk.sinks &&
         !walk.guard && walk.steps.empty() && !walk.summed;
}

/// OUTPUT of SOFTMAX, which the probabilities of MAPS are made of; nullopt if more than moves make them.
std::optional<FactorSide> softmax_side(const SoftmaxSite& softmax, const FactorMaps& maps, MatchContext& context) {
  const Value& output = canonical(*softmax.output, context.facts);
  for (const OperandView& view : walk_movement({maps.probabilities.value, maps.probabilities.axes}, context).views)
    if (&canonical(*view.value, context.facts) == &output) return FactorSide{view.value, view.axes};
  return std::nullopt;
}

/// The sum of exponentials of what SOFTMAX takes that LOG holds for each row the logarithm of; nullopt if it holds another.
std::optional<RowSum> sum_in_logarithm(Value& log, const SoftmaxSite& softmax, Node& node, MatchContext& context) {
  Facts& facts = context.facts;
  const size_t rank = facts.shape(*softmax.input).known().size();
  auto sum = row_sum_of_log(log, 1, rank, node, context);
  if (!sum || sum->factor != 1 || sum->is_never_zero || !sum->others.empty()) return std::nullopt;
  const auto exponent = exponent_in(*sum->rows.value, node, context);
  const bool is_its_own = exponent && exponent->factor == 1 &&
                          &canonical(*exponent->value, facts) == &canonical(*softmax.input, facts) &&
                          axis_in(sum->rows, *sum->rows.value, false, facts) == softmax.keys;
  return is_its_own ? sum : std::nullopt;
}

/// The share of keys whose exponentials come to exp(LOG) beside a sink of exp(SINK), or 1 over that if INVERSE.
///
///   Sigmoid(log - sink)      1 / (1 + Exp(sink - log))
Matcher share_of_keys(Value** log, Value** sink, bool inverse) {
  Matcher whole = commuted("Add", number_is(1), op("Exp", {difference(any(sink), any(log))}));
  if (inverse) return whole;
  return either(
      {op("Sigmoid", {difference(any(log), any(sink))}), op("Reciprocal", {whole}), op("Div", {number_is(1), whole})});
}

/// The sink, as it broadcasts to TERMS, where GATE, which broadcasts to SIDE, is the share of the keys of SOFTMAX beside it, or
/// divides by that if NODE is a Div; none if GATE is anything else.
SinkGate sink_in(Value& gate, const FactorSide& side, const FactorSide& terms, const SoftmaxSite& softmax, Node& node,
                 MatchContext& context) {
  const Broadcast moved = broadcast_of(gate, side, context);
  Value *log = nullptr, *sink = nullptr;
  if (moved.views.empty() || !share_of_keys(&log, &sink, node.is("Div"))(*moved.views.back().value, context.facts)) return {};
  const auto placed = [&](Value& value) {
    return placed_beside(broadcast_of(value, moved.views.back(), context), Role::kRow, terms, false, node, context);
  };
  Value* log_of_rows = placed(*log);
  const auto sum = log_of_rows ? sum_in_logarithm(*log_of_rows, softmax, node, context) : std::nullopt;
  return sum ? SinkGate{placed(*sink), nullptr, nullptr, !sum->is_of_exponents} : SinkGate();
}

/// True if OUTPUT may be multiplied behind moves: a Mul or Div comes before any product. Cheap, since it is asked of every
/// product.
bool may_be_gated(const Value& output) {
  std::vector<const Value*> values;
  values.reserve(2 * kMaxSearchedForGate);
  values.push_back(&output);
  for (size_t i = 0; i < values.size() && i < kMaxSearchedForGate; ++i)
    for (const Use& use : values[i]->uses) {
      if (use.node && (use.node->is("Mul") || use.node->is("Div"))) return true;
      const Value* made = use.node && !may_make_product(*use.node) ? use.node->output(0) : nullptr;
      if (made) values.push_back(made);
    }
  return false;
}

}  // namespace

std::optional<SinkGate> sink_gate(const SoftmaxSite& softmax, const ProbabilityWalk& walk, const ValueProduct& product,
                                  MatchContext& context) {
  Facts& facts = context.facts;
  const bool may_be = is_plain(softmax, walk) && may_be_gated(*product.output.value);
  const auto maps = may_be ? factor_maps(*walk.probabilities, product, facts) : std::nullopt;
  if (!maps) return std::nullopt;
  const std::vector<OutputView> views = walk_output(*maps->output.value, maps->output.axes, context);
  for (const OutputView& view : views) {
    const Readers readers = readers_of(*view.value, facts);
    Node* node = readers.only_one() ? readers.all[0].node : nullptr;
    const bool divides = node && node->is("Div") && readers.all[0].input == 0;
    if (!node || !(node->is("Mul") || divides) || node->graph != view.value->graph) continue;
    const MaybeShape before = facts.shape(*view.value), after = facts.shape(*node->outputs[0]);
    const auto terms = before && after && *before == *after ? softmax_side(softmax, *maps, context) : std::nullopt;
    Value& gate = *node->inputs[static_cast<size_t>(1 - readers.all[0].input)];
    SinkGate found = terms ? sink_in(gate, {view.value, view.axes}, *terms, softmax, *node, context) : SinkGate();
    if (!found.column) continue;
    found.gated = &canonical(*view.value, facts);
    found.made = node->outputs[0];
    return found;
  }
  return std::nullopt;
}

}  // namespace attn_opt
