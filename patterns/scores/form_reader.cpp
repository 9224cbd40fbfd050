#include "patterns/scores/form_reader.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "attn_opt/canonical.h"
#include "attn_opt/internal/mask_contents.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/products/chosen_columns.h"
#include "patterns/scores/conditions.h"
#include "patterns/scores/fills.h"
#include "patterns/scores/laid_over.h"
#include "patterns/scores/peel_steps.h"
#include "patterns/scores/score_bounds.h"
#include "src/match/permutation.h"

namespace attn_opt {
namespace {

constexpr int kMaxFormDepth = 24;
constexpr size_t kMaxSources = 64;
constexpr size_t kMaxAddends = 16;

/// VALUE and what it is made of by operators of forms, nearest first.
std::vector<Value*> sources(Value& value, Facts& facts) {
  std::vector<Value*> found{&canonical(value, facts)};
  for (size_t i = 0; i < found.size() && found.size() < kMaxSources; ++i) {
    const Node* node = found[i]->producer;
    if (!node) continue;
    for (const size_t number : form_operands(*node)) {
      Value* operand = node->input(static_cast<int>(number)) ? &canonical(*node->inputs[number], facts) : nullptr;
      if (operand && std::ranges::find(found, operand) == found.end()) found.push_back(operand);
    }
  }
  return found;
}

/// The number that ADDED is in each place where FACTOR is, or is not, 0, both being constants of one shape.
std::optional<double> number_beside(const Tensor& added, const Tensor& factor, bool where_zero) {
  const auto numbers = added.cast(onnx::TensorProto::DOUBLE), factors = factor.cast(onnx::TensorProto::DOUBLE);
  if (!numbers || !factors || added.dims() != factor.dims()) return std::nullopt;
  std::optional<double> found;
  for (size_t i = 0; i < numbers->data<double>().size(); ++i) {
    if ((factors->data<double>()[i] == 0) != where_zero) continue;
    if (found.value_or(numbers->data<double>()[i]) != numbers->data<double>()[i]) return std::nullopt;
    found = numbers->data<double>()[i];
  }
  return found;
}

/// True if FACTOR, in any case, is the one number other than 0 that VALUE holds for all scores: a scale, which the model tells.
bool is_one_scale(const ScoreForm& factor, const Value& value, Facts& facts) {
  const MaybeShape shape = facts.shape(value);
  const bool is_one = shape && std::ranges::all_of(*shape, [](const Dim& size) { return size.is(1); });
  return is_one && factor.size() > 1 && std::ranges::all_of(factor, [](const ScoreCase& one) { return one.number != 0; });
}

constexpr int kMaxAboveNothing = 4;

using Function = double (*)(double);

/// What NODE makes of each number; null if that is none of these.
Function function_of(const Node& node) {
  if (!node.domain().empty()) return nullptr;
  if (node.op() == "Reciprocal") return [](double number) { return 1 / number; };
  if (node.op() == "Log") return [](double number) { return std::log(number); };
  if (node.op() == "Exp") return [](double number) { return std::exp(number); };
  if (node.op() == "Abs") return [](double number) { return std::abs(number); };
  return nullptr;
}

/// f(m ? x : y)  =>  m ? f(x) : f(y), x and y being numbers of which f makes some
std::optional<ScoreForm> each_number(std::optional<ScoreForm> form, Function function) {
  if (!form || !is_numbers(*form)) return std::nullopt;
  for (ScoreCase& one : *form) one.number = function(one.number);
  const bool are_numbers = std::ranges::none_of(*form, [](const ScoreCase& one) { return std::isnan(one.number); });
  return are_numbers ? form : std::nullopt;
}

/// True if NODE multiplies with 0, or subtracts a value from itself.
bool makes_nothing(const Node& node, Facts& facts) {
  if (node.inputs.size() != 2 || !node.inputs[0] || !node.inputs[1]) return false;
  if (node.is("Sub")) return &canonical(*node.inputs[0], facts) == &canonical(*node.inputs[1], facts);
  const auto is_zero = [&](const Value* value) { return facts.uniform(*value) == 0.0; };
  return node.is("Mul") && std::ranges::any_of(node.inputs, is_zero);
}

}  // namespace

bool is_nothing(Value& value, Facts& facts) {
  Value* seen = &value;
  for (int step = 0; step < kMaxAboveNothing; ++step) {
    if (facts.uniform(*seen) == 0.0) return true;
    const Node* node = canonical(*seen, facts).producer;
    if (!node || !node->domain().empty()) return false;
    if (makes_nothing(*node, facts)) return true;
    if (!has(*node, Trait::kMoves) && !node->is("Neg") && !node->is("Cast")) return false;
    seen = node->inputs[0];
  }
  return false;
}

std::vector<Value*> addends_of(Value& sum, Facts& facts) {
  // Of 2 * Mean(x, y) all are told, but of x / 2 + y the factors are.
  for (const bool follows_factors : {true, false}) {
    const std::vector<Addend> terms = FormReader(facts, follows_factors).linear_terms(sum);
    if (!std::ranges::all_of(terms, [](const Addend& term) { return term.coefficient == 1; })) continue;
    std::vector<Value*> values;
    for (const Addend& term : terms) values.push_back(term.value);
    return values;
  }
  return {&canonical(sum, facts)};
}

std::vector<size_t> form_operands(const Node& node) {
  if (!has(node, Trait::kElementwise)) return lays_over(node) ? std::vector<size_t>{0} : std::vector<size_t>();
  if (node.is("Where")) return {1, 2};
  if (node.is("Cast") || node.is("Reciprocal")) return {0};
  if (!has(node, Trait::kAdds) && !has(node, Trait::kMultiplies) && !has(node, Trait::kSelects)) return {};
  std::vector<size_t> operands(node.inputs.size());
  std::iota(operands.begin(), operands.end(), 0);
  return operands;
}

Value* nearest_source(Value& value, const std::function<bool(Value&)>& fits, Facts& facts) {
  const std::vector<Value*> all = sources(value, facts);
  const auto found = std::ranges::find_if(all, [&](Value* source) { return fits(*source); });
  return found == all.end() ? nullptr : *found;
}

Value* common_source(Value& one, Value& other, const std::function<bool(Value&)>& fits, Facts& facts) {
  const std::vector<Value*> of_other = sources(other, facts);
  const auto is_common = [&](Value& value) { return std::ranges::find(of_other, &value) != of_other.end() && fits(value); };
  return nearest_source(one, is_common, facts);
}

std::optional<ScoreForm> FormReader::in_terms_of(Value& core, Value& value) {
  auto form = read(value, &canonical(core, facts_));
  return form && !is_numbers(*form) ? form : std::nullopt;
}

std::optional<ScoreForm> FormReader::one_step(Node& node, size_t core) {
  Value& followed = canonical(*node.inputs[core], facts_);
  for (Value* operand : node.inputs)
    if (operand && &canonical(*operand, facts_) != &followed) holds_[{&canonical(*operand, facts_), &followed}] = false;
  return computed(*node.outputs[0], &followed);
}

std::optional<ScoreForm> FormReader::numbers(Value& value) { return read(value, nullptr); }

std::optional<ScoreForm> FormReader::numbers(std::span<const Addend> addends, const Known& known) {
  std::optional<ScoreForm> total = number_form(0);
  for (const Addend& addend : addends) {
    auto form = numbers(*addend.value);
    const Tensor* constant = facts_.constant(*addend.value);
    for (const Literal& literal : known.hold) {
      const Tensor* factor = constant ? facts_.constant(*literal.condition) : nullptr;
      const auto number = factor ? number_beside(*constant, *factor, !literal.holds) : std::nullopt;
      if (number) form = number_form(*number);
    }
    if (!form) return std::nullopt;
    for (ScoreCase& one : *form)
      for (Literal& literal : one.guard) literal = met_over(std::move(literal), addend.frame);
    total = sum(*total, *form, addend.coefficient);
    if (!total) return std::nullopt;
  }
  return total;
}

std::optional<double> FormReader::number_where(std::span<const Addend> addends, const Known& known) {
  const auto total = numbers(addends, known);
  return total ? attn_opt::number_where(*total, known) : std::nullopt;
}

double FormReader::number_added(const ScoreForm& form, size_t index) {
  return form[index].number + number_where(form[index].addends, known_in(form, index)).value_or(NAN);
}

std::vector<Addend> FormReader::linear_terms(Value& sum) {
  Value& seen = canonical(sum, facts_);
  const bool may_be_sum = seen.producer && (has(*seen.producer, Trait::kMultiplies) || has(*seen.producer, Trait::kAdds));
  if (!may_be_sum && facts_.uniform(seen) != 0.0) return {{&seen}};
  return sum_or_value(seen)[0].addends;
}

/// VALUE, where there is no reader, as the sum that it is; as itself if it is none, or one that only a factor tells.
ScoreForm FormReader::sum_or_value(Value& value) {
  const auto [known, is_new] = known_.try_emplace({&value, nullptr}, value_form(value));
  if (is_new && depth_ <= kMaxFormDepth) known->second = sum_of(value);
  return *known->second;
}

ScoreForm FormReader::sum_of(Value& value) {
  if (facts_.uniform(value) == 0.0) return number_form(0);
  const Node* node = value.producer;
  const bool multiplies = node && has(*node, Trait::kMultiplies);
  if (!node || (!multiplies && !has(*node, Trait::kAdds))) return value_form(value);
  ++depth_;
  const auto form = multiplies ? multiplied(*node, nullptr) : total(*node, nullptr);
  --depth_;
  const auto is_once = [](const Addend& addend) { return addend.coefficient == 1; };
  const bool is_sum = form && form->size() == 1 && form->front().addends.size() <= kMaxAddends &&
                      (!multiplies || follows_factors_ ||
                       (form->front().addends.size() > 1 && std::ranges::all_of(form->front().addends, is_once)));
  return is_sum ? *form : value_form(value);
}

/// True if VALUE is made of CORE by operators of forms alone.
bool FormReader::holds(Value& value, const Value& core) {
  Value& seen = canonical(value, facts_);
  if (&seen == &core) return true;
  const auto [known, is_new] = holds_.try_emplace({&seen, &core}, false);
  if (!is_new || !seen.producer || depth_ > kMaxFormDepth) return known->second;
  ++depth_;
  const Node& node = *seen.producer;
  const bool found = std::ranges::any_of(form_operands(node), [&](size_t number) {
    Value* operand = node.input(static_cast<int>(number));
    return operand && holds(*operand, core);
  });
  --depth_;
  return holds_[{&seen, &core}] = found;
}

/// VALUE in terms of CORE; as numbers if that is null, or if VALUE has nothing of it and is none otherwise.
std::optional<ScoreForm> FormReader::read(Value& value, Value* core) {
  Value& seen = canonical(value, facts_);
  if (!reader_) return sum_or_value(seen);
  if (&seen == core) return core_form();
  if (const auto number = number_before_narrowing(seen, facts_)) return number_form(*number);
  // 0 * a  =>  0, and a - a
  if ((!core || !holds(seen, *core)) && is_nothing(seen, facts_)) return nothing_form(seen);
  if (core && !holds(seen, *core)) return value_form(seen);
  const auto [known, is_new] = known_.try_emplace({&seen, core}, std::nullopt);
  if (!is_new || depth_ > kMaxFormDepth) return known->second;
  ++depth_;
  auto form = computed(seen, core);
  --depth_;
  return known_[{&seen, core}] = std::move(form);
}

std::optional<ScoreForm> FormReader::operand(const Node& node, size_t number, Value* core) {
  return node.input(static_cast<int>(number)) ? read(*node.inputs[number], core) : std::nullopt;
}

std::optional<ScoreForm> FormReader::computed(Value& value, Value* core) {
  Node* node = value.producer;
  if (!core) {
    if (auto form = node && value.output == 0 ? moved(*node) : std::nullopt) return form;
    if (auto mask = one_or_zero(value)) return mask;
  }
  if (!node || value.output != 0 || !node->domain().empty()) return std::nullopt;
  if (has(*node, Trait::kAdds)) return total(*node, core);
  if (has(*node, Trait::kMultiplies)) return multiplied(*node, core);
  if (node->is("Where")) return chosen(*node, core);
  if (lays_over(*node)) return laid_over(*node, core);
  // Cast(a)  =>  a, from one floating type to another
  if (node->is("Cast") && is_floating(facts_.type(*node->inputs[0])) && is_floating(facts_.type(value)))
    return operand(*node, 0, core);
  if (!core && (node->is("Max") || node->is("Min") || node->is("Clip"))) return bounded(*node);
  if (const auto function = core ? nullptr : function_of(*node)) return each_number(operand(*node, 0, nullptr), function);
  // Min(a, m ? inf : f)  =>  m ? a : f, where every a is at least f; for inf may stand what no score reaches
  if (node->is("Min") && core && node->inputs.size() == 2) {
    const size_t bounded = node->input(0) && holds(*node->inputs[0], *core) ? 0 : 1;
    const auto form = operand(*node, bounded, core);
    auto bound = operand(*node, 1 - bounded, nullptr);
    if (!bound || !is_numbers(*bound))
      if (auto either = either_number(*node->inputs[1 - bounded])) bound = std::move(either);
    return form && bound ? lesser(*bound, *form, kHighestMaskFill, clamp_) : std::nullopt;
  }
  return std::nullopt;
}

/// a + b - c ...  =>  the sums of their cases        -a  =>  -1 * a
std::optional<ScoreForm> FormReader::total(const Node& node, Value* core) {
  auto form = operand(node, 0, core);
  const double times = times_added(node, 0);
  for (size_t i = 1; form && i < node.inputs.size(); ++i) {
    const auto more = operand(node, i, core);
    form = more ? sum(*form, *more, times_added(node, i) / times) : std::nullopt;
  }
  return form && times != 1 ? product(number_form(times), *form) : form;
}

/// (m ? x : y) * a  =>  m ? x * a : y * a, x and y being numbers; a / x  =>  a * (1 / x)
std::optional<ScoreForm> FormReader::multiplied(const Node& node, Value* core) {
  const bool divides = node.is("Div");
  if (!node.input(0) || !node.input(1)) return std::nullopt;
  const bool first_holds = core ? holds(*node.inputs[0], *core) : facts_.uniform(*node.inputs[1]).has_value();
  const size_t form_at = divides || first_holds ? 0 : 1;
  const auto number = facts_.uniform(*node.inputs[1 - form_at]);
  auto factor = number ? number_form(*number) : reader_ ? numbers(*node.inputs[1 - form_at]) : std::nullopt;
  const auto form = factor ? operand(node, form_at, core) : std::nullopt;
  if (!form || !factor || !is_numbers(*factor)) return std::nullopt;
  if (core && is_one_scale(*factor, *node.inputs[1 - form_at], facts_)) return std::nullopt;
  if (divides)
    for (ScoreCase& one : *factor) {
      if (one.number == 0) return std::nullopt;
      one.number = 1 / one.number;
    }
  return product(*factor, *form);
}

/// Where(m, a, b)  =>  m ? a : b
std::optional<ScoreForm> FormReader::chosen(const Node& node, Value* core) {
  if (!node.input(0)) return std::nullopt;
  const auto held = operand(node, 1, core), otherwise = operand(node, 2, core);
  return held && otherwise ? selection(literal(*node.inputs[0]), *held, *otherwise) : std::nullopt;
}

/// Trilu(a)  =>  Trilu(true) ? a : 0      Scatter(a, places, number)  =>  Scatter(false, places, true) ? number : a
std::optional<ScoreForm> FormReader::laid_over(const Node& node, Value* core) {
  const auto form = operand(node, 0, core);
  const auto number = node.is("Trilu") ? std::optional(0.0) : facts_.uniform(*node.inputs[2]);
  const auto left = form && number ? left_by(node, *reader_, *context_) : std::nullopt;
  return left ? selection(*left, *form, number_form(*number)) : std::nullopt;
}

/// Max(m ? x : y, a)  =>  m ? Max(x, a) : Max(y, a), and so Min and Clip, all of numbers
std::optional<ScoreForm> FormReader::bounded(const Node& node) {
  const auto least = [](double a, double b) { return std::max(a, b); };
  const auto most = [](double a, double b) { return std::min(a, b); };
  auto form = operand(node, 0, nullptr);
  const bool clips = node.is("Clip");
  for (size_t i = 1; form && i < (clips ? 3 : node.inputs.size()); ++i) {
    const auto number = clips ? clip_bound(node, static_cast<int>(i), facts_) : std::nullopt;
    const auto bound = number ? number_form(*number) : operand(node, i, nullptr);
    const bool is_least = node.is("Max") || (clips && i == 1);
    form = bound ? (is_least ? mapped(*form, *bound, least) : mapped(*form, *bound, most)) : std::nullopt;
  }
  return form;
}

/// Transpose(m ? x : y)  =>  Transpose(m) ? x : y, and so of all that only moves elements
std::optional<ScoreForm> FormReader::moved(Node& node) {
  if (!has(node, Trait::kMoves) || !node.input(0)) return std::nullopt;
  auto form = numbers(*node.inputs[0]);
  return form ? behind_move(*std::move(form), node) : std::nullopt;
}

std::optional<ScoreForm> FormReader::behind_move(ScoreForm form, const Node& move) {
  for (ScoreCase& one : form)
    for (Literal& literal : one.guard) {
      Value* condition = moved(*literal.condition, move);
      if (!condition) return std::nullopt;
      literal = literal_of({condition, literal.holds}, facts_);
    }
  return form;
}

/// What NODE would make of CONDITION in the place of its input: CONDITION itself once more, where it was moved there and back.
/// Null where it would have to be repeated first.
Value* FormReader::moved(Value& condition, const Node& node) {
  InnerValues inner(*reader_, *context_);
  const MaybeShape whole = facts_.shape(*node.inputs[0]), shape = facts_.shape(condition);
  const bool broadcasts = node.is("Transpose") || node.is("Squeeze") || node.is("Unsqueeze") || node.is("Expand");
  if (!whole || !shape || shape->size() > whole->size() || (!broadcasts && *shape != *whole)) return nullptr;
  const std::vector<int64_t> perm = permutation(node, whole->size());
  std::vector<int64_t> own(perm.end() - std::min(std::ssize(perm), std::ssize(*shape)), perm.end());
  for (int64_t& axis : own) axis -= std::ssize(*whole) - std::ssize(*shape);
  if (!own.empty() && std::ranges::min(own) >= 0) return &canonical(*inner.transposed(&condition, own), facts_);
  Value* raised = inner.raised(&condition, whole->size());
  return &canonical(*(perm.empty() ? inner.again(node, 0, raised) : inner.transposed(raised, perm)), facts_);
}

/// A constant of two numbers.
std::optional<ScoreForm> FormReader::either_number(Value& value) {
  const auto pair = two_numbers_in(value, facts_);
  if (!pair) return std::nullopt;
  InnerValues inner(*reader_, *context_);
  Value* first = inner.build().node("Equal", {&value, inner.build().scalar(pair->first, facts_.type(value))});
  return selection(literal(*first), number_form(pair->first), number_form(pair->second));
}

/// Ones and zeros, or a number and zeros, that are booleans or a constant.
std::optional<ScoreForm> FormReader::one_or_zero(Value& value) {
  const bool is_binary = context_ && std::ranges::find(context_->given.binary, &value) != context_->given.binary.end();
  const auto number = is_binary ? std::optional(1.0) : number_of_mask(value, facts_);
  if (!number) return std::nullopt;
  Literal found;
  if (const auto condition = condition_of_number(value, facts_))
    found = literal_of(*condition, facts_);
  else
    found = literal(*InnerValues(*reader_, *context_)
                         .build()
                         .node("Cast", {&value}, {GraphBuilder::attribute("to", int64_t{onnx::TensorProto::BOOL})}));
  return selection(found, number_form(*number), number_form(0));
}

Literal FormReader::literal(Value& condition) { return literal_of({&condition, true}, facts_); }

}  // namespace attn_opt
