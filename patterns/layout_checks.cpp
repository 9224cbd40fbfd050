#include "patterns/layout_checks.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/readers.h"
#include "src/match/permutation.h"

namespace attn_opt {
namespace {

Dim leading_product(const Shape& shape) { return product(std::span(shape).first(shape.size() - 2)); }

/// Of AFTER, which BEFORE is regrouped to. One size of the two need not be the same symbol: it is what the others leave of all
/// elements.
bool keep_last_two_axes(MaybeShape before, MaybeShape after) {
  if (!before || before->size() < 2 || after->size() < 2) return false;
  const bool keeps_first = (*before)[before->size() - 2] == (*after)[after->size() - 2],
             keeps_last = before->back() == after->back();
  if (keeps_first && keeps_last) return true;
  const Dim& other = keeps_first ? before->back() : (*before)[before->size() - 2];
  const bool is_left_over = !other.is_constant() && leading_product(*before) == leading_product(*after);
  return (keeps_first || keeps_last) && is_left_over;
}

/// How many axes lie behind the one in what MOVE makes that lies BEHIND axes before the last in what it reads; nullopt if that
/// is regrouped.
std::optional<size_t> axis_behind_move(const Node& move, size_t behind, Facts& facts) {
  const MaybeShape before = facts.shape(*move.inputs[0]), after = facts.shape(*move.outputs[0]);
  if (!before || !after || behind >= before->size()) return std::nullopt;
  const std::span sizes(*before);
  const bool ends_alike =
      has(move, Trait::kRegroups) &&
      std::ranges::equal(sizes.last(behind + 1), std::span(*after).last(std::min(behind + 1, after->size())));
  if (ends_alike) return behind;
  const auto origins = move.is("Transpose") ? std::optional(permutation(move, facts)) : unit_moves(*before, *after);
  if (!origins) return std::nullopt;
  const auto found = std::ranges::find(*origins, std::ssize(*before) - 1 - static_cast<int64_t>(behind));
  return found == origins->end() ? std::nullopt : std::optional(static_cast<size_t>(origins->end() - found - 1));
}

}  // namespace

std::optional<std::vector<int64_t>> unit_moves(const Shape& before, const Shape& after) {
  std::vector<int64_t> origins;
  size_t axis = 0;
  for (const Dim& size : after) {
    while (axis < before.size() && before[axis] != size && before[axis].is(1)) ++axis;
    const bool is_kept = axis < before.size() && before[axis] == size;
    if (!is_kept && !size.is(1)) return std::nullopt;
    origins.push_back(is_kept ? static_cast<int64_t>(axis++) : kNoAxis);
  }
  const bool leaves_units =
      std::all_of(before.begin() + static_cast<std::ptrdiff_t>(axis), before.end(), [](const Dim& size) { return size.is(1); });
  return leaves_units ? std::optional(origins) : std::nullopt;
}

Value* regrouped_from(Node& node, Facts& facts) {
  const MaybeShape after = facts.shape(*node.outputs[0]);
  Node* next = &node;
  for (int step = 0; after && next && has(*next, Trait::kRegroups) && step < kMaxTogether; ++step) {
    Value& source = canonical(*next->inputs[0], facts);
    if (keep_last_two_axes(facts.shape(source), after)) return &source;
    next = source.producer;
  }
  return nullptr;
}

Value* before_regroupings(const Node& node, const std::function<bool(const Shape&)>& fits, Facts& facts) {
  Value* source = node.input(0);
  for (int step = 0; source && step < kMaxTogether; ++step) {
    const MaybeShape shape = facts.shape(*source);
    if (!shape) return nullptr;
    if (fits(*shape)) return source;
    const Node* maker = canonical(*source, facts).producer;
    source = maker && has(*maker, Trait::kRegroups) ? maker->input(0) : nullptr;
  }
  return nullptr;
}

Untransposed untransposed(Value& value, Facts& facts) {
  Untransposed seen{&canonical(value, facts)};
  const MaybeShape shape = facts.shape(value);
  seen.at.resize(shape ? shape->size() : 0);
  std::iota(seen.at.begin(), seen.at.end(), int64_t{0});
  for (int step = 0; step < kMaxTogether && seen.value->producer && seen.value->producer->is("Transpose"); ++step) {
    const std::vector<int64_t> perm = permutation(*seen.value->producer, seen.at.size());
    if (perm.empty()) break;
    for (int64_t& axis : seen.at) axis = perm[static_cast<size_t>(axis)];
    seen.value = &canonical(*seen.value->producer->inputs[0], facts);
  }
  return seen;
}

std::optional<size_t> axis_in_moved(Value& value, size_t behind, Value& made, Facts& facts) {
  std::vector<const Node*> moves;  // last first
  const Value& first = canonical(value, facts);
  for (Value* seen = &canonical(made, facts); seen != &first; seen = &canonical(*moves.back()->inputs[0], facts)) {
    const bool is_moved = seen->producer && has(*seen->producer, Trait::kKeepsAll);
    if (!is_moved || moves.size() == kMaxTogether) return std::nullopt;
    moves.push_back(seen->producer);
  }
  std::optional<size_t> at = behind;
  for (size_t i = moves.size(); i-- > 0 && at;) at = axis_behind_move(*moves[i], *at, facts);
  return at;
}

Value& before_expands(Value& value, Facts& facts) {
  constexpr int kMostExpands = 4;
  Value* seen = &canonical(value, facts);
  for (int step = 0; step < kMostExpands && seen->producer && seen->producer->is("Expand"); ++step)
    seen = &canonical(*seen->producer->inputs[0], facts);
  return *seen;
}

Value* swapped_from(Node& node, Facts& facts) {
  std::vector<int64_t> axes, swapped;
  Node* next = &node;
  for (int step = 0; next && next->is("Transpose") && step < kMaxTogether; ++step) {
    const std::vector<int64_t> perm = permutation(*next, facts);
    if (perm.size() < 2 || (step > 0 && perm.size() != axes.size())) return nullptr;
    if (step == 0) {
      axes.resize(perm.size());
      std::iota(axes.begin(), axes.end(), 0);
      swapped = axes;
      std::swap(swapped.back(), swapped[swapped.size() - 2]);
    }
    for (int64_t& axis : axes) axis = perm[static_cast<size_t>(axis)];
    Value& source = canonical(*next->inputs[0], facts);
    if (axes == swapped) return &source;
    next = source.producer;
  }
  return nullptr;
}

Value* end_of_chain(Value& value, Node& first, Value* (*origin)(Node&, Facts&), Facts& facts) {
  const Value& start = canonical(value, facts);
  Node* next = &first;
  for (int step = 0; step < kMaxTogether && !next->outputs.empty() && next->outputs[0]; ++step) {
    Value& made = *next->outputs[0];
    if (origin(*next, facts) == &start) return &made;
    const Readers readers = readers_of(made, facts);
    if (!readers.only_one() || !readers.all[0].node || readers.all[0].node->graph != first.graph) return nullptr;
    next = readers.all[0].node;
  }
  return nullptr;
}

std::vector<Value*> regroupings(Node& first, size_t most, Facts& facts) {
  std::vector<Value*> made;
  for (Node* next = &first; next && made.size() < most && has(*next, Trait::kRegroups);) {
    made.push_back(next->outputs[0]);
    const Readers readers = readers_of(*made.back(), facts);
    next = readers.only_one() && readers.all[0].input == 0 ? readers.all[0].node : nullptr;
  }
  return made;
}

bool is_taken_for(const Dim& size, const Dim& other, const Facts& facts, const Node* reader) {
  const auto is_same = [&](const SizeAssumption& assumed) {
    const bool are_these = (assumed.one == size && assumed.other == other) || (assumed.one == other && assumed.other == size);
    return are_these && std::ranges::any_of(assumed.nodes, [reader](const Node* node) { return node != reader; });
  };
  return size == other || std::ranges::any_of(facts.assumptions(), is_same);
}

}  // namespace attn_opt
