#include "patterns/scores/conditions.h"

#include <cmath>

#include "attn_opt/canonical.h"
#include "patterns/linear_function.h"

namespace attn_opt {
namespace {

using NotFiniteKind = NotFinite::Kind;

constexpr int kMaxAsked = 8;

/// What NODE, a test that holds, finds infinite.
std::optional<NotFinite> infinite_in(const Node& node, Facts& facts) {
  if (node.is("IsInf") && node.input(0)) {
    const bool positive = node.int_attribute("detect_positive", 1) != 0,
               negative = node.int_attribute("detect_negative", 1) != 0;
    if (!positive && !negative) return std::nullopt;
    return NotFinite{node.inputs[0], !negative   ? NotFiniteKind::kPositive
                                     : !positive ? NotFiniteKind::kNegative
                                                 : NotFiniteKind::kInfinity};
  }
  if (!node.is("Equal") || !node.input(0) || !node.input(1)) return std::nullopt;
  for (const size_t number : {0, 1})
    if (const auto compared = facts.uniform(*node.inputs[number]); compared && std::isinf(*compared))
      return NotFinite{node.inputs[1 - number], *compared > 0 ? NotFiniteKind::kPositive : NotFiniteKind::kNegative};
  return std::nullopt;
}

/// The sign that CONDITION asks for, by a comparison with 0: 1, -1, or 0 if it asks something else.
int sign_asked(const Condition& condition, Facts& facts) {
  const Condition seen = affirmed(condition, facts);
  const Node* node = seen.is_true ? seen.value->producer : nullptr;
  if (!node || !(node->is("Greater") || node->is("Less")) || !node->input(0) || !node->input(1)) return 0;
  const int sign = node->is("Greater") ? 1 : -1;
  return facts.uniform(*node->inputs[1]) == 0.0 ? sign : facts.uniform(*node->inputs[0]) == 0.0 ? -sign : 0;
}

std::optional<NotFinite> not_finite_within(const Condition& whole, int steps, Facts& facts) {
  if (Value* tested = nan_where(whole, facts)) return NotFinite{tested, NotFiniteKind::kNaN};
  const Condition seen = affirmed(whole, facts);
  if (seen.is_true && seen.value->producer)
    if (auto infinite = infinite_in(*seen.value->producer, facts)) return infinite;
  const auto both = steps > 0 ? conditions_of(seen, facts) : std::nullopt;
  for (const size_t number : {0, 1}) {
    auto found = both ? not_finite_within((*both)[number], steps / 2, facts) : std::nullopt;
    if (!found) continue;
    const int sign = found->kind == NotFiniteKind::kInfinity ? sign_asked((*both)[1 - number], facts) : 0;
    if (sign != 0) found->kind = sign > 0 ? NotFiniteKind::kPositive : NotFiniteKind::kNegative;
    return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<NotFinite> not_finite_where(const Condition& whole, Facts& facts) {
  return not_finite_within(whole, kMaxAsked, facts);
}

Condition affirmed(const Condition& whole, Facts& facts) {
  constexpr int kMaxFunctions = 8;
  Condition seen{&canonical(*whole.value, facts), whole.is_true};
  for (int step = 0; step < kMaxFunctions; ++step) {
    const auto function = truth_function_in(*seen.value, facts);
    if (!function) break;
    seen = {function->value, seen.is_true == function->is_true};
  }
  return seen;
}

Value* nan_where(const Condition& whole, Facts& facts) {
  const Condition seen = affirmed(whole, facts);
  const Node* node = seen.value->producer;
  if (!node || !node->input(0)) return nullptr;
  // not (x == x)  =>  IsNaN(x)
  const bool is_test = seen.is_true ? node->is("IsNaN") : compares_with_itself(*node, facts);
  return is_test ? node->inputs[0] : nullptr;
}

bool compares_with_itself(const Node& node, Facts& facts) {
  return node.is("Equal") && node.input(0) && node.input(1) &&
         &canonical(*node.inputs[0], facts) == &canonical(*node.inputs[1], facts);
}

std::optional<Condition> condition_of_number(Value& number, Facts& facts) {
  constexpr int kMaxCasts = 8;  // 0 and 1 are the same in every type
  const Node* node = canonical(number, facts).producer;
  for (int casts = 0; casts < kMaxCasts && node && node->is("Cast") && node->input(0); ++casts) {
    if (facts.type(*node->inputs[0]) == onnx::TensorProto::BOOL) return affirmed({node->inputs[0], true}, facts);
    node = canonical(*node->inputs[0], facts).producer;
  }
  return std::nullopt;
}

std::optional<std::array<Condition, 2>> conditions_of(const Condition& whole, Facts& facts) {
  const Condition seen = affirmed(whole, facts);
  const Node* node = seen.value->producer;
  if (!node || !node->is(seen.is_true ? "And" : "Or") || !node->input(0) || !node->input(1)) return std::nullopt;
  return std::array{Condition{node->inputs[0], seen.is_true}, Condition{node->inputs[1], seen.is_true}};
}

}  // namespace attn_opt
