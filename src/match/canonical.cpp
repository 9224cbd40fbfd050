#include "attn_opt/canonical.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "attn_opt/operator_traits.h"
#include "src/match/cut_range.h"
#include "src/match/facts/fact_store.h"
#include "src/match/no_ops.h"
#include "src/match/node_forms.h"
#include "src/match/nowhere_negative.h"
#include "src/match/operator_map.h"
#include "src/match/permutation.h"
#include "src/match/positions/written_region.h"
#include "src/match/shape_rules/reduced_axis.h"
#include "src/match/shape_rules/shape_rule.h"

namespace attn_opt {
namespace {

using P = onnx::TensorProto;

/// Nodes that are looked at for one that undoes what others did.
constexpr int kMaxRoundTrip = 8;

/// A search NESTING deep within others, which keep what they found in NOTES.
struct Search {
  Facts& facts;
  FactStore& store;
  int nesting = 0;
};

Value& seen_through(Value& value, const Search& search);

/// True if NODE, a reduction, takes the sum, the mean or the like of single elements, and their axes away.
bool reduces_nothing(const Node& node, Facts& facts) {
  if (node.int_attribute("keepdims", 1) != 0 || !node.input(0)) return false;
  const MaybeShape shape = facts.shape(*node.inputs[0]);
  const auto axes = shape ? reduced_axes(node, shape->size(), facts) : std::nullopt;
  return axes && std::ranges::all_of(*axes, [&](size_t axis) { return (*shape)[axis].is(1); });
}

/// True if every number of type FROM is one of type TO.
bool holds(DataType to, DataType from) {
  if (from == P::BOOL) return to == P::FLOAT || to == P::DOUBLE || to == P::FLOAT16 || to == P::INT32 || to == P::INT64;
  if (from == P::INT32) return to == P::INT64 || to == P::DOUBLE;
  if (from == P::FLOAT16 || from == P::BFLOAT16) return to == P::FLOAT || to == P::DOUBLE;
  return from == P::FLOAT && to == P::DOUBLE;
}

/// What a chain of nodes that TAKES makes of a value, up from the last, until IS_BACK says of a value that VALUE repeats it.
template <class Takes, class IsBack>
Value* before_chain(Value& value, const Search& search, Takes takes, IsBack is_back) {
  Value* seen = &value;
  for (int step = 0; step < kMaxRoundTrip; ++step) {
    Node* node = seen->producer;
    if (!node || seen->output != 0 || !node->domain().empty() || node->inputs.empty() || !node->inputs[0] || !takes(*node))
      return nullptr;
    seen = &seen_through(*node->inputs[0], {search.facts, search.store, search.nesting + 1});
    if (is_back(*seen)) return seen;
  }
  return nullptr;
}

/// Transposes that together exchange nothing.
Value* before_transposes(Value& value, const Search& search) {
  std::vector<int64_t> axes;
  const auto permutes = [&](const Node& node) {
    std::vector<int64_t> perm = permutation(node, search.facts);
    if (perm.empty() || (!axes.empty() && axes.size() != perm.size())) return false;
    for (int64_t& axis : axes) axis = perm[static_cast<size_t>(axis)];
    if (axes.empty()) axes = std::move(perm);
    return true;
  };
  return before_chain(value, search, permutes, [&axes](const Value&) { return std::ranges::is_sorted(axes); });
}

/// What VALUE, a ConcatFromSequence, joins again as it was cut; null if it is anything else.
Value* before_sequence(Value& value, const Search& search) {
  const auto rank = [&](const Value& part) -> std::optional<size_t> {
    const MaybeShape shape = search.facts.shape(part);
    return shape ? std::optional(shape->size()) : std::nullopt;
  };
  Value* whole = cut_and_joined(*value.producer, rank);
  return whole ? &seen_through(*whole, {search.facts, search.store, search.nesting + 1}) : nullptr;
}

/// The one that VALUE, a SequenceAt, is of the values that a sequence was made of; null if it is anything else.
Value* before_sequence_at(Value& value, const Search& search) {
  const Node& node = *value.producer;
  const Node* sequence = node.input(0) ? node.inputs[0]->producer : nullptr;
  const auto place = node.input(1) ? search.facts.scalar(*node.inputs[1]) : std::nullopt;
  if (!sequence || !sequence->is("SequenceConstruct") || !place) return nullptr;
  const auto at = axis_in(static_cast<int64_t>(*place), sequence->inputs.size());
  return at && sequence->inputs[*at] ? &seen_through(*sequence->inputs[*at], {search.facts, search.store, search.nesting + 1})
                                     : nullptr;
}

/// What VALUE, a ScatterND, writes over all that was there.
Value* before_scatter(Value& value, const Search& search) {
  Value* written = written_over_all(*value.producer, search.facts);
  return written ? &seen_through(*written, {search.facts, search.store, search.nesting + 1}) : nullptr;
}

/// What values are copies of for one that is made of them.
auto seen_within(const Search& search) {
  return [further = Search{search.facts, search.store, search.nesting + 1}](Value& value) -> Value& {
    return seen_through(value, further);
  };
}

/// What CUT takes out again of what was laid beside others, or padded; null if it does anything else.
Value* before_cut(Value& cut, const Search& search) { return cut_back(cut, seen_within(search), search.facts); }

/// The same, or Gathers that together leave each element at its place.
Value* before_gathers(Value& value, const Search& search) {
  if (Value* cut = before_cut(value, search)) return cut;
  GatheredOrder all;
  const auto moves = [&](const Node& node) {
    auto order = gathered_order(node, search.facts);
    const bool is_first = all.places.empty();
    if (!order || (!is_first && (order->axis != all.axis || order->places.size() != all.places.size()))) return false;
    for (int64_t& place : all.places) place = order->places[static_cast<size_t>(place)];
    if (is_first) all = *std::move(order);
    return true;
  };
  return before_chain(value, search, moves, [&all](const Value&) { return std::ranges::is_sorted(all.places); });
}

/// The value that all operands are copies of among which VALUE is chosen in each place; null if they are several.
Value* before_choice(Value& value, const Search& search) {
  const Node& node = *value.producer;
  const auto seen = seen_within(search);
  Value* only = nullptr;
  for (size_t i = node.is("Where") ? 1 : 0; i < node.inputs.size(); ++i) {
    Value* operand = node.inputs[i] ? &seen(*node.inputs[i]) : nullptr;
    if (!operand || (only && operand != only)) return nullptr;
    only = operand;
  }
  return only && same_shape(*only, value, search.facts) ? only : nullptr;
}

/// What VALUE, a Concat, joins the parts of in their order, which are all of it; null if it is anything else.
Value* before_concat(Value& value, const Search& search) {
  const Node& node = *value.producer;
  const auto seen = seen_within(search);
  const MaybeShape whole = search.facts.shape(value);
  const auto axis = whole ? axis_in(node.int_attribute("axis", 0), whole->size()) : std::nullopt;
  const auto joined = axis ? joined_range(node.inputs, *axis, seen, search.facts) : std::nullopt;
  return joined && same_shape(*joined->source, value, search.facts) ? joined->source : nullptr;
}

/// What VALUE, of a Loop, is handed on from; null if it is made anew in some iteration.
Value* before_loop(Value& value, const Search& search) {
  const Node& node = *value.producer;
  const Value* initial = handed_on_by(search.store, node, static_cast<size_t>(value.output));
  const auto own = std::ranges::find(node.inputs, initial);
  return initial && own != node.inputs.end() ? &seen_within(search)(**own) : nullptr;
}

/// True of each second node of a chain.
auto in_pairs() {
  return [calls = 0](const Value&) mutable { return ++calls % 2 == 0; };
}

/// The axis that NODE, a Slice, reverses, as it says that; nullopt if it does anything else.
std::optional<int64_t> reversed_axis(const Node& node, Facts& facts) {
  if (!node.is("Slice") || !node.input(3) || !node.input(4) || facts.scalar(*node.inputs[4]) != -1.0) return std::nullopt;
  const auto axis = same_shape(*node.inputs[0], *node.outputs[0], facts) ? facts.scalar(*node.inputs[3]) : std::nullopt;
  const MaybeShape shape = axis ? facts.shape(*node.outputs[0]) : nullptr;
  const auto place = shape ? axis_in(static_cast<int64_t>(*axis), shape->size()) : std::nullopt;
  return place ? std::optional(static_cast<int64_t>(*place)) : std::nullopt;
}

/// What two Slices in turn reverse along one axis; null if they do anything else.
Value* before_reversals(Value& value, const Search& search) {
  const auto axis = reversed_axis(*value.producer, search.facts);
  const auto reverses = [&](const Node& node) { return axis && reversed_axis(node, search.facts) == axis; };
  return before_chain(value, search, reverses, in_pairs());
}

Value* before_slice(Value& value, const Search& search) {
  Value* before = before_cut(value, search);
  return before ? before : before_reversals(value, search);
}

/// Two Nots, or two pairs of them.
Value* before_nots(Value& value, const Search& search) {
  const auto is_not = [](const Node& node) { return node.is("Not"); };
  return before_chain(value, search, is_not, in_pairs());
}

/// Nodes that give the elements other axes, of which VALUE has again those that they had.
Value* before_regroupings(Value& value, const Search& search) {
  const auto regroups = [&](const Node& node) {
    return has(node, Trait::kRegroups) || node.outputs[0] == &value || drops_single_axis(node, search.facts);
  };
  return before_chain(value, search, regroups, [&](const Value& before) { return same_shape(before, value, search.facts); });
}

/// The same behind a reduction of single elements: a row of one key has a maximum too, so that only what adds an axis is taken
/// back.
Value* before_reduction_of_one(Value& value, const Search& search) {
  return reduces_nothing(*value.producer, search.facts) ? before_regroupings(value, search) : nullptr;
}

/// Casts to types that hold every number of VALUE's, which is cast back.
Value* before_casts(Value& value, const Search& search) {
  Facts& facts = search.facts;
  const DataType type = facts.type(value);
  const auto widens = [&](const Node& node) {
    return node.is("Cast") && (node.outputs[0] == &value || holds(facts.type(*node.outputs[0]), type));
  };
  return before_chain(value, search, widens, [&](const Value& before) { return facts.type(before) == type; });
}

/// Exp(Log(x))  =>  x, which is nowhere negative
Value* before_logarithm(Value& value, const Search& search) {
  const Node* node = seen_within(search)(*value.producer->inputs[0]).producer;
  const bool is_log = node && node->is("Log") && node->input(0) && is_nowhere_negative(*node->inputs[0], search.facts);
  return is_log ? &seen_within(search)(*node->inputs[0]) : nullptr;
}

using RoundTrip = Value* (*)(Value&, const Search&);

/// By the last operator: what a value is a copy of by several nodes of which the last undo what the first did; null if it is
/// none.
constexpr OperatorMap<RoundTrip> kRoundTrips(std::to_array<OperatorMap<RoundTrip>::Row>({
    {"Transpose", before_transposes},
    {"Identity", before_regroupings},
    {"Reshape", before_regroupings},
    {"Squeeze", before_regroupings},
    {"Unsqueeze", before_regroupings},
    {"Flatten", before_regroupings},
    {"ReduceSum", before_reduction_of_one},
    {"ReduceMean", before_reduction_of_one},
    {"ReduceMax", before_reduction_of_one},
    {"ReduceMin", before_reduction_of_one},
    {"ReduceProd", before_reduction_of_one},
    {"Slice", before_slice},
    {"Split", before_cut},
    {"Gather", before_gathers},
    {"Concat", before_concat},
    {"ConcatFromSequence", before_sequence},
    {"SequenceAt", before_sequence_at},
    {"ScatterND", before_scatter},
    {"Where", before_choice},
    {"Min", before_choice},
    {"Max", before_choice},
    {"Not", before_nots},
    {"Cast", before_casts},
    {"Exp", before_logarithm},
}));

/// True if outputs of NODE behind the first may be copies.
bool has_copies_behind_first(const Node& node) { return node.is("Split") || !node.bodies.empty(); }

/// What the node that makes VALUE, or it and some above it, copy; null if it is no copy.
Value* copied(Value& value, const Search& search) {
  if (!value.producer) return nullptr;
  if (Value* source = value.output == 0 ? copied_by(*value.producer, search.facts) : nullptr) return source;
  if (!value.producer->bodies.empty()) return before_loop(value, search);
  const RoundTrip* undone = search.nesting > kMaxRoundTripNesting ? nullptr : kRoundTrips.find(*value.producer);
  return undone && (value.output == 0 || has_copies_behind_first(*value.producer)) ? (*undone)(value, search) : nullptr;
}

Value& seen_through(Value& value, const Search& search) {
  if (!value.producer || (value.output != 0 && !has_copies_behind_first(*value.producer))) return value;
  const auto note_of = [&search](const Value& copy) -> CopyNote& {
    return search.store.copies()[copy][static_cast<size_t>(search.nesting)];
  };
  // Each value on the way leads to the next, and then to the last, so that no way is gone again, whatever is asked first.
  Value* seen = &value;
  while (true) {
    CopyNote& note = note_of(*seen);
    const bool is_known = note.source && note.producer == seen->producer && !note.source->removed;
    Value* next = is_known ? note.source : copied(*seen, search);
    note = {next ? next : seen, seen->producer};
    if (note.source == seen) break;
    seen = next;
  }
  for (Value* passed = &value; passed != seen;) passed = std::exchange(note_of(*passed).source, seen);
  return *seen;
}

}  // namespace

Value& canonical(Value& value, Facts& facts) { return seen_through(value, {facts, facts.impl_->store}); }

}  // namespace attn_opt
