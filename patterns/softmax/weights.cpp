#include "patterns/softmax/weights.h"

#include <cmath>
#include <unordered_map>
#include <utility>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/readers.h"
#include "patterns/scores/conditions.h"
#include "patterns/scores/form_reader.h"
#include "patterns/scores/peel_steps.h"
#include "src/match/cut_range.h"

namespace attn_opt {

/// What softmax_at() gave, by node, of weights that are divided again, and how deep the search is. Each level asks the one
/// below it several times, as where a matrix is balanced by dividing rows and columns in turn.
struct NestedSoftmaxes {
  std::unordered_map<const Node*, std::optional<SoftmaxSite>> known;
  int depth = 0;
};

namespace {

/// Steps of what is computed in other axes, and moved there and back.
constexpr size_t kMostMovesOfWeights = 4;

/// softmax_at(NODE), each asked once below one that is read; none where they are nested too deep.
std::optional<SoftmaxSite> nested_softmax_at(Node& node, MatchContext& context) {
  constexpr int kMostNested = 4;
  NestedSoftmaxes& nested = *context.nested_softmaxes;
  if (const auto known = nested.known.find(&node); known != nested.known.end()) return known->second;
  if (nested.depth == kMostNested) return std::nullopt;
  ++nested.depth;
  auto site = softmax_at(node, context);
  --nested.depth;
  nested.known.emplace(&node, site);
  return site;
}

/// What is known of nested softmaxes while the outermost of them is read.
class NestedScope {
 public:
  explicit NestedScope(MatchContext& context) : context_(context), is_outermost_(!context.nested_softmaxes) {
    if (is_outermost_) context.nested_softmaxes = &own_;
  }
  ~NestedScope() {
    if (is_outermost_) context_.nested_softmaxes = nullptr;
  }
  NestedScope(const NestedScope&) = delete;
  NestedScope& operator=(const NestedScope&) = delete;

 private:
  MatchContext& context_;
  bool is_outermost_;
  NestedSoftmaxes own_;
};

/// Where(IsNaN(p), 0, p)  =>  p: rows that are 0 throughout are NaN again when they are divided by their sum.
Value& unguarded(Value& value, Facts& facts) {
  const Node* node = canonical(value, facts).producer;
  for (const size_t kept : {1, 2}) {
    Value* tested = node && node->is("Where") ? nan_where({node->inputs[0], kept == 2}, facts) : nullptr;
    if (!tested || facts.uniform(*node->inputs[3 - kept]) != 0.0) continue;
    if (&canonical(*tested, facts) == &canonical(*node->inputs[kept], facts)) return *node->inputs[kept];
  }
  return value;
}

/// Looks for the softmax that values are, or are what is left of. Each value is looked at once: the factors of a product may be
/// products of the same.
class SoftmaxSearch {
 public:
  SoftmaxSearch(Node& reader, MatchContext& context) : reader_(reader), context_(context) {}

  std::optional<SoftmaxSite> in(Value& value);

 private:
  std::optional<SoftmaxSite> look_at(Value& value);
  std::optional<SoftmaxSite> weighed(const Node& node);
  std::optional<SoftmaxSite> powered(const Node& node);
  std::optional<SoftmaxSite> made_by(Node* node, const Value& result);
  std::optional<SoftmaxSite> moved(const Node& move);

  Node& reader_;
  MatchContext& context_;
  size_t moves_ = 0;  ///< that are looked through at the moment
  std::unordered_map<const Value*, std::optional<SoftmaxSite>> known_;
};

/// Softmax(x) * Exp(y)  =>  Softmax(x + y), but for a number for each row; so of all that is no less than 0
std::optional<SoftmaxSite> SoftmaxSearch::weighed(const Node& node) {
  for (const size_t at : {0, 1}) {
    if (!node.is("Mul")) break;
    Value* added = logarithm_of(*node.inputs[1 - at], reader_, context_);
    auto site = added ? in(*node.inputs[at]) : std::nullopt;
    if (site && site->weights[0].scale != 1) continue;  // of which X alone would be so many times itself
    const MaybeShape before = context_.facts.shape(*node.inputs[at]), after = context_.facts.shape(*node.outputs[0]);
    if (!site || site->cut_off || site->weights.size() > 1 || !before || !after || *before != *after) continue;
    site->input = InnerValues(reader_, context_).sum(site->input, added);
    site->is_weighed = true;
    site->exponent_offset = site->exponent_offset.value_or(0);
    return site;
  }
  return std::nullopt;
}

/// What NODE takes the power of, and the exponent, a number above 0; null if it takes none.
std::pair<Value*, double> power_in(const Node& node, Facts& facts) {
  const bool squares = node.is("Mul") && &canonical(*node.inputs[0], facts) == &canonical(*node.inputs[1], facts);
  const double exponent = squares ? 2 : node.is("Pow") ? facts.uniform(*node.inputs[1]).value_or(0) : 0;
  return {exponent > 0 && std::isfinite(exponent) ? node.inputs[0] : nullptr, exponent};
}

/// Softmax(x)^c  =>  Softmax(c * x), but for a number for each row
std::optional<SoftmaxSite> SoftmaxSearch::powered(const Node& node) {
  // The sum over n keys is n^(1 - c) or more: a float holds that, half types do not.
  constexpr double kMostInRange = 4;
  const auto [power_of, exponent] = power_in(node, context_.facts);
  auto site = power_of ? in(*power_of) : std::nullopt;
  const DataType type = context_.facts.type(*node.outputs[0]);
  const MaybeShape before = power_of ? context_.facts.shape(*power_of) : nullptr,
                   after = context_.facts.shape(*node.outputs[0]);
  if (!site || site->cut_off || site->weights.size() > 1 || !before || !after || *before != *after) return std::nullopt;
  site->input = value_of({site->input, exponent}, reader_, context_);
  site->after_lowering *= exponent;
  if (exponent > kMostInRange || type == onnx::TensorProto::FLOAT16) site->exponent_offset = site->exponent_offset.value_or(0);
  return site;
}

/// The softmax that NODE, perhaps null, is or ends, if RESULT is what it makes.
std::optional<SoftmaxSite> SoftmaxSearch::made_by(Node* node, const Value& result) {
  if (!node || node->is("Exp") || !may_be_softmax(*node)) return std::nullopt;
  auto site = nested_softmax_at(*node, context_);
  const bool is_made = site && !site->divided && site->keys && &canonical(*site->output, context_.facts) == &result;
  return is_made ? std::move(site) : std::nullopt;
}

/// T(Softmax(x))  =>  Softmax(T(x))
std::optional<SoftmaxSite> SoftmaxSearch::moved(const Node& move) {
  // One of scores that are regrouped for it alone is read as that of what they were.
  auto site = made_by(canonical(*move.inputs[0], context_.facts).producer, *move.outputs[0]);
  if (site || moves_ == kMostMovesOfWeights) return site;
  ++moves_;
  site = in(*move.inputs[0]);
  --moves_;
  return site ? behind_move(*std::move(site), move, *move.outputs[0], reader_, context_) : std::nullopt;
}

std::optional<SoftmaxSite> SoftmaxSearch::in(Value& value) {
  if (const auto known = known_.find(&value); known != known_.end()) return known->second;
  return known_[&value] = look_at(value);
}

std::optional<SoftmaxSite> SoftmaxSearch::look_at(Value& value) {
  Facts& facts = context_.facts;
  Value& rest = canonical(unguarded(value, facts), facts);
  if (rest.producer) {
    if (has(*rest.producer, Trait::kKeepsAll)) return moved(*rest.producer);
    if (auto product = weighed(*rest.producer)) return product;
    if (auto power = powered(*rest.producer)) return power;
  }
  Value& whole = canonical(uncut(rest, facts), facts);
  auto site = made_by(whole.producer, whole);
  if (!site || &whole == &rest) return site;
  const auto cut = site->cut_off ? std::nullopt : columns_cut_off(*rest.producer, *site->keys, facts);
  if (!cut || cut->rest != &rest) return std::nullopt;
  site->cut_off = cut->columns;
  return site;
}

/// Enters FORM, of the core, in WEIGHTS; false if it is more than zeros and a number times that.
bool take_form(const ScoreForm& form, Weights& weights) {
  weights.factor = 0;
  for (const ScoreCase& one : form) {
    if (one.number != 0 || !one.addends.empty()) return false;
    if (one.scale != 0 && weights.factor != 0 && one.scale != weights.factor) return false;
    weights.factor = one.scale != 0 ? one.scale : weights.factor;
    weights.form.push_back({one.guard, one.scale != 0 ? 1.0 : 0.0, one.scale != 0 ? 0.0 : -INFINITY});
  }
  return weights.factor != 0 && std::isfinite(weights.factor);
}

/// What divides weights, and what adds them up.
constexpr size_t kMostDividing = 2;

/// True if nothing reads CORE, and VALUE that is made of it, but what divides VALUE and adds up one of the two: others need the
/// softmax, of which nothing would be saved.
bool serves_division_alone(Value& value, Value& core, Facts& facts) {
  const Readers of_value = readers_of(value, facts);
  if (of_value.is_output || of_value.all.size() > kMostDividing) return false;
  if (&canonical(core, facts) == &canonical(value, facts)) return true;
  const Readers of_core = readers_of(core, facts);
  return !of_core.is_output && of_value.all.size() + of_core.all.size() <= 3;
}

std::optional<Weights> weights_behind(Value& value, Node& reader, MatchContext& context, size_t most_moves);

/// What MOVE makes of weights that are masked probabilities, as those of the moved ones.
///
///   T(m ? p : 0)  =>  T(m) ? T(p) : 0
std::optional<Weights> moved_weights(const Node& move, Node& reader, MatchContext& context, size_t most_moves) {
  auto weights = weights_behind(*move.inputs[0], reader, context, most_moves - 1);
  if (!weights || !weights->softmax) return std::nullopt;
  weights->core = InnerValues(reader, context).again(move, 0, weights->core);
  weights->softmax = behind_move(*std::move(weights->softmax), move, *weights->core, reader, context);
  auto form = weights->softmax ? FormReader(reader, context).behind_move(std::move(weights->form), move) : std::nullopt;
  if (!form) return std::nullopt;
  weights->form = *std::move(form);
  return weights;
}

/// weights_in(), which MOST_MOVES moves or fewer make.
std::optional<Weights> weights_behind(Value& value, Node& reader, MatchContext& context, size_t most_moves) {
  Facts& facts = context.facts;
  const Node* move = canonical(value, facts).producer;
  if (most_moves > 0 && move && has(*move, Trait::kKeepsAll) && readers_of(value, facts).all.size() <= kMostDividing)
    if (auto moved = moved_weights(*move, reader, context, most_moves)) return moved;
  Weights weights;
  Value& whole = unguarded(value, facts);
  weights.hides_nan = &canonical(whole, facts) != &canonical(value, facts);
  const NestedScope scope(context);
  SoftmaxSearch search(reader, context);
  const auto is_core = [&](Value& source) {
    if (is_exponential(source, context, UnitAxes::kAdded)) return true;
    weights.softmax = search.in(source);
    return weights.softmax.has_value();
  };
  weights.core = nearest_source(whole, is_core, facts);
  if (!weights.core) return std::nullopt;
  const auto form = FormReader(reader, context).in_terms_of(*weights.core, whole);
  if (!form || !keeps_shape(whole, *weights.core, facts) || !take_form(*form, weights)) return std::nullopt;
  if (weights.softmax && !serves_division_alone(value, *weights.core, facts)) return std::nullopt;
  if (weights.softmax) return weights;
  const auto exponent = exponent_in(*weights.core, reader, context, UnitAxes::kAdded);
  if (!exponent) return std::nullopt;
  weights.exponent = *exponent;
  return weights;
}

}  // namespace

std::optional<Weights> weights_in(Value& value, Node& reader, MatchContext& context) {
  return weights_behind(value, reader, context, kMostMovesOfWeights);
}

Value& uncut(Value& value, Facts& facts) {
  const Node* node = canonical(value, facts).producer;
  return node && (cuts_out(*node) || node->is("Pad")) ? *node->inputs[0] : value;
}

}  // namespace attn_opt
