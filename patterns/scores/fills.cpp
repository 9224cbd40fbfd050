#include "patterns/scores/fills.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/internal/mask_contents.h"
#include "attn_opt/operator_traits.h"

namespace attn_opt {
namespace {

using Kind = ScoreTerm::Kind;

/// Scores are seldom as low as this: higher fills are left what they are.
constexpr double kHighest = -2000;

/// What is added to a fill as deep as this leaves it no weight in exp().
constexpr double kBelowBiases = -1e30;

/// True if masked scores show elsewhere, or weigh something beside others than scores.
bool needs_its_fill(const Sdpa& sdpa, bool lowers_rows) {
  return sdpa.scores_output || sdpa.probabilities || sdpa.clamp || (lowers_rows && sdpa.type == onnx::TensorProto::FLOAT16);
}

/// True if TERM is a bias of 0 and -inf.
bool adds_no_number(const ScoreTerm& term, Facts& facts) {
  if (term.kind != Kind::kBias || term.coefficient != 1) return false;
  const MaskContents contents = mask_contents(*term.value, facts);
  return !contents.may_hold_lowest && contents.least == 0 && contents.greatest == 0;
}

/// The number that all TERMS lay over the scores but those that lay or add -inf, and biases that leave it as deep as it is
/// where rows are not LOWERED; nullopt if there is none, or TERMS do more than that.
std::optional<double> sole_finite_fill(std::span<const ScoreTerm> terms, bool lowered, Facts& facts) {
  std::optional<double> fill;
  for (const ScoreTerm& term : terms) {
    const bool is_lost = term.kind == Kind::kBias && !lowered && fill && *fill <= kBelowBiases;
    if (is_lost || adds_no_number(term, facts)) continue;
    if (!is_fill(term) || term.coefficient != 1) return std::nullopt;
    if (term.fill == -INFINITY) continue;
    if (fill && *fill != term.fill) return std::nullopt;
    fill = term.fill;
  }
  return fill;
}

constexpr int kMostNodesAboveMask = 64;

/// What a cast makes SEEN, a half, of: a wider floating value; null if none does.
Value* widened(const Value& seen, Facts& facts) {
  const Node* node = seen.producer;
  if (!node || !node->is("Cast") || facts.type(seen) != onnx::TensorProto::FLOAT16 || !node->input(0)) return nullptr;
  const DataType from = facts.type(*node->inputs[0]);
  return is_floating(from) && lowest_finite(from) < lowest_finite(onnx::TensorProto::FLOAT16) ? node->inputs[0] : nullptr;
}

constexpr int kMaxCopies = 16;

/// The only number beside 0 that TENSOR holds, 1 if there is none; nullopt if there are several, or if it is a scale of all.
std::optional<double> number_beside_zero(const Tensor& tensor) {
  const auto numbers = tensor.cast(onnx::TensorProto::DOUBLE);
  if (!numbers) return std::nullopt;
  std::optional<double> found;
  bool has_zero = false;
  for (const double number : numbers->data<double>()) {
    has_zero |= number == 0;
    if (number == 0) continue;
    if (!std::isfinite(number) || found.value_or(number) != number) return std::nullopt;
    found = number;
  }
  return has_zero || found == 1 ? std::optional(found.value_or(1)) : std::nullopt;
}

}  // namespace

std::optional<double> number_before_narrowing(Value& value, Facts& facts) {
  const auto number = facts.uniform(value);
  Value* const wide = number == -INFINITY ? widened(canonical(value, facts), facts) : nullptr;
  return wide ? facts.uniform(*wide) : number;
}

std::optional<std::pair<double, double>> two_numbers_in(const Value& value, Facts& facts) {
  const Tensor* constant = facts.constant(value);
  const auto numbers = constant && is_floating(constant->type()) && constant->size() > 1
                           ? constant->cast(onnx::TensorProto::DOUBLE)
                           : Expected<Tensor>(Tensor());
  if (!numbers || numbers->size() < 2) return std::nullopt;
  const auto all = numbers->data<double>();
  std::optional<double> other;
  for (const double number : all) {
    if (number == 0 || std::isnan(number) || (other && number != all[0] && number != *other)) return std::nullopt;
    if (number != all[0]) other = number;
  }
  return other ? std::optional(std::pair(all[0], *other)) : std::nullopt;
}

bool may_be_narrowed(Value& mask, Facts& facts) {
  std::vector<Value*> pending{&mask};
  for (size_t at = 0; at < pending.size(); ++at) {
    if (at == kMostNodesAboveMask) return true;
    const Value& seen = canonical(*pending[at], facts);
    if (Value* const wide = widened(seen, facts)) {
      const MaskContents contents = mask_contents(*wide, facts);
      if (contents.may_hold_lowest || contents.least < lowest_finite(onnx::TensorProto::FLOAT16)) return true;
      continue;
    }
    if (seen.producer)
      for (Value* input : seen.producer->inputs)
        if (input && facts.type(*input) == onnx::TensorProto::FLOAT16 && std::ranges::find(pending, input) == pending.end())
          pending.push_back(input);
  }
  return false;
}

bool is_fill(const ScoreTerm& term) { return term.kind == Kind::kKeep || term.kind == Kind::kDrop; }

std::optional<double> deepen_fills(Sdpa& sdpa, bool lowers_rows, Facts& facts) {
  const auto first = std::ranges::find_if(sdpa.terms, is_fill);
  const auto fill = sole_finite_fill({first, sdpa.terms.end()}, lowers_rows, facts);
  if (!fill || *fill > kHighest || needs_its_fill(sdpa, lowers_rows)) return std::nullopt;
  const bool vanishes = !lowers_rows && *fill + sdpa.exponent_offset.value_or(0) <= kHighest;
  if (lowers_rows ? *fill <= absorbing_fill(sdpa.type) : !vanishes) return std::nullopt;
  for (auto term = first; term != sdpa.terms.end(); ++term) {
    if (!is_fill(*term) || std::isinf(term->fill)) continue;
    term->fill = vanishes ? -INFINITY : lowest_finite(sdpa.type);
    if (term->causal) term->causal->otherwise = term->fill;
  }
  return vanishes ? std::nullopt : fill;
}

std::optional<double> number_of_mask(Value& value, Facts& facts) {
  Value* seen = &value;
  bool is_cast = false;  // which may round other numbers than 0 and 1
  for (int step = 0; step < kMaxCopies; ++step) {
    seen = &canonical(*seen, facts);
    if (const Tensor* constant = facts.constant(*seen)) {
      const auto number = number_beside_zero(*constant);
      return is_cast && number != 1.0 ? std::nullopt : number;
    }
    if (const auto number = facts.uniform(*seen)) return *number == 0 || *number == 1 ? std::optional(1.0) : std::nullopt;
    Node* node = seen->producer;
    if (!node || !node->input(0)) return std::nullopt;
    if (node->is("Cast") && facts.type(*node->inputs[0]) == onnx::TensorProto::BOOL) return 1;
    if (!has(*node, Trait::kMoves) && !node->is("Trilu") && !node->is("Cast")) return std::nullopt;
    is_cast |= node->is("Cast");
    seen = node->inputs[0];
  }
  return std::nullopt;
}

}  // namespace attn_opt
