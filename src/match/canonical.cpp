#include "attn_opt/canonical.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "attn_opt/operator_traits.h"
#include "src/match/cut_range.h"
#include "src/match/facts/fact_store.h"
#include "src/match/node_forms.h"
#include "src/match/operator_map.h"
#include "src/match/permutation.h"
#include "src/match/positions/whole_scatter.h"
#include "src/match/shape_rules/reduced_axis.h"

namespace attn_opt {
namespace {

using P = onnx::TensorProto;

/// Nodes that are looked at for one that undoes what others did.
constexpr int kMaxRoundTrip = 8;

/// A search NESTING deep within others, which keep what they found in NOTES.
struct Search {
  Facts& facts;
  CopyNotes& notes;
  int nesting = 0;
};

Value& seen_through(Value& value, const Search& search);

bool same_shape(const Value& one, const Value& other, Facts& facts) {
  const MaybeShape a = facts.shape(one);
  const MaybeShape b = facts.shape(other);
  return a && b && *a == *b;
}

bool keeps_type(const Node& node, Facts& facts) {
  const DataType type = facts.type(*node.inputs[0]);
  return type != onnx::TensorProto::UNDEFINED && type == facts.type(*node.outputs[0]);
}

/// True unless NODE, a Slice, may run backwards or skip.
bool steps_are_one(const Node& node, Facts& facts) {
  const Value* steps = node.input(4);
  return !steps || facts.uniform(*steps) == 1.0;
}

/// True if NODE, a Pad, is known to add nothing anywhere.
bool pads_nothing(const Node& node, Facts& facts) {
  if (node.graph->model().onnx_opset(node) < 11 || !node.input(1)) return false;
  const IntegerData* pads = facts.integers(*node.inputs[1]);
  return pads && !pads->values.empty() && std::ranges::all_of(pads->values, [](const Dim& count) { return count.is(0); });
}

bool transposes_nothing(const Node& node, Facts&) {
  const auto* perm = node.ints_attribute("perm");
  if (!perm) return false;
  for (int i = 0; i < perm->size(); ++i)
    if (perm->Get(i) != i) return false;
  return true;
}

bool drops_nothing(const Node& node, Facts& facts) {
  const int opset = node.graph->model().onnx_opset(node);
  if (opset < 7) return node.int_attribute("is_test", 0) != 0;
  const Value* training = node.input(2);
  return !training || facts.uniform(*training) == 0.0 || (node.input(1) && facts.uniform(*node.input(1)) == 0.0);
}

/// The number that leaves the other operand of NODE as it is where it stands at NUMBER; nullopt if none does.
std::optional<double> neutral_number(const Node& node, size_t number) {
  if (node.is("Add") || node.is("Or") || (number == 1 && node.is("Sub"))) return 0;
  if (node.is("Mul") || node.is("And") || (number == 1 && (node.is("Div") || node.is("Pow")))) return 1;
  if (node.is("Max")) return -std::numeric_limits<double>::infinity();
  return node.is("Min") ? std::optional(std::numeric_limits<double>::infinity()) : std::nullopt;
}

/// True if NODE's input number NUMBER is the number that leaves the other operand as it is.
bool is_neutral(const Node& node, size_t number, Facts& facts) {
  if (node.inputs.size() != 2 || !node.inputs[0] || !node.inputs[1]) return false;
  const auto neutral = neutral_number(node, number);
  return neutral && facts.uniform(*node.inputs[number]) == neutral &&
         same_shape(*node.inputs[1 - number], *node.outputs[0], facts);
}

/// The operand that NODE, a Where, chooses everywhere, whatever the other holds; null if its condition is not known.
Value* chosen_everywhere(const Node& node, Facts& facts) {
  const auto condition = node.input(0) && node.input(1) && node.input(2) ? facts.uniform(*node.inputs[0]) : std::nullopt;
  if (!condition) return nullptr;
  Value* chosen = node.inputs[*condition != 0 ? 1 : 2];
  return same_shape(*chosen, *node.outputs[0], facts) ? chosen : nullptr;
}

/// True if NODE takes the sum, the mean or the like of single elements, and their axes away.
bool reduces_nothing(const Node& node, Facts& facts) {
  constexpr std::array kReductions = {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"};
  const bool reduces = std::ranges::any_of(kReductions, [&](const char* op_type) { return node.is(op_type); });
  if (!reduces || node.int_attribute("keepdims", 1) != 0 || !node.input(0)) return false;
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

/// The operand that NODE copies by what is known of the others; null if there is none.
Value* copied_by(const Node& node, Facts& facts) {
  if (is_no_op(node, facts)) return node.inputs[0];
  if (!node.domain().empty()) return nullptr;
  if (is_neutral(node, 0, facts)) return node.inputs[1];
  return node.is("Where") ? chosen_everywhere(node, facts) : nullptr;
}

/// VALUE, or what single nodes that change nothing made it of.
Value& source_of(Value& value, Facts& facts) {
  Value* seen = &value;
  while (seen->producer && seen->output == 0) {
    Value* copied = copied_by(*seen->producer, facts);
    if (!copied) break;
    seen = copied;
  }
  return *seen;
}

/// What a chain of nodes that TAKES makes of a value, up from the last, until IS_BACK says of a value that VALUE repeats it.
template <class Takes, class IsBack>
Value* before_chain(Value& value, const Search& search, Takes takes, IsBack is_back) {
  Value* seen = &value;
  for (int step = 0; step < kMaxRoundTrip; ++step) {
    Node* node = seen->producer;
    if (!node || seen->output != 0 || !node->domain().empty() || node->inputs.empty() || !node->inputs[0] || !takes(*node))
      return nullptr;
    seen = &seen_through(*node->inputs[0], {search.facts, search.notes, search.nesting + 1});
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

/// What NODE, a ConcatFromSequence, joins again as it was cut; null if it does anything else.
Value* before_sequence(const Node& node, const Search& search) {
  const auto rank = [&](const Value& value) -> std::optional<size_t> {
    const MaybeShape shape = search.facts.shape(value);
    return shape ? std::optional(shape->size()) : std::nullopt;
  };
  Value* whole = cut_and_joined(node, rank);
  return whole ? &seen_through(*whole, {search.facts, search.notes, search.nesting + 1}) : nullptr;
}

/// The one that NODE, a SequenceAt, takes of the values that a sequence was made of; null if it does anything else.
Value* before_sequence_at(const Node& node, const Search& search) {
  const Node* sequence = node.input(0) ? node.inputs[0]->producer : nullptr;
  const auto place = node.input(1) ? search.facts.scalar(*node.inputs[1]) : std::nullopt;
  if (!sequence || !sequence->is("SequenceConstruct") || !place) return nullptr;
  const auto at = axis_in(static_cast<int64_t>(*place), sequence->inputs.size());
  return at && sequence->inputs[*at] ? &seen_through(*sequence->inputs[*at], {search.facts, search.notes, search.nesting + 1})
                                     : nullptr;
}

/// What NODE, a ScatterND, writes over all that was there.
Value* before_scatter(const Node& node, const Search& search) {
  Value* written = written_over_all(node, search.facts);
  return written ? &seen_through(*written, {search.facts, search.notes, search.nesting + 1}) : nullptr;
}

/// What values are copies of for one that is made of them.
auto seen_within(const Search& search) {
  return [further = Search{search.facts, search.notes, search.nesting + 1}](Value& value) -> Value& {
    return seen_through(value, further);
  };
}

/// What CUT takes out again of what was laid beside others, or padded; null if it does anything else.
Value* before_cut(const Value& cut, const Search& search) { return cut_back(cut, seen_within(search), search.facts); }

/// The value that all operands of NODE, which chooses among them in each place, are copies of; null if they are several.
Value* before_choice(const Node& node, const Search& search) {
  const auto seen = seen_within(search);
  Value* only = nullptr;
  for (size_t i = node.is("Where") ? 1 : 0; i < node.inputs.size(); ++i) {
    Value* operand = node.inputs[i] ? &seen(*node.inputs[i]) : nullptr;
    if (!operand || (only && operand != only)) return nullptr;
    only = operand;
  }
  return only && same_shape(*only, *node.outputs[0], search.facts) ? only : nullptr;
}

/// What NODE, a Concat, joins the parts of in their order, which are all of it; null if it does anything else.
Value* before_concat(const Node& node, const Search& search) {
  const auto seen = seen_within(search);
  const MaybeShape whole = search.facts.shape(*node.outputs[0]);
  const auto axis = whole ? axis_in(node.int_attribute("axis", 0), whole->size()) : std::nullopt;
  const auto joined = axis ? joined_range(node.inputs, *axis, seen, search.facts) : std::nullopt;
  return joined && same_shape(*joined->source, *node.outputs[0], search.facts) ? joined->source : nullptr;
}

/// What VALUE is a copy of by several nodes of which the last undo what the first did; null if it is none.
Value* before_round_trip(Value& value, const Search& search) {
  if (!value.producer) return nullptr;
  const Node& last = *value.producer;
  if (cuts_out(last)) return before_cut(value, search);
  if (value.output != 0) return nullptr;
  const auto is_not = [](const Node& node) { return node.is("Not"); };
  const auto in_pairs = [calls = 0](const Value&) mutable { return ++calls % 2 == 0; };
  if (last.is("Transpose")) return before_transposes(value, search);
  if (has(last, Trait::kSelects)) return before_choice(last, search);
  if (last.is("Concat")) return before_concat(last, search);
  if (last.is("ConcatFromSequence")) return before_sequence(last, search);
  if (last.is("SequenceAt")) return before_sequence_at(last, search);
  if (last.is("ScatterND")) return before_scatter(last, search);
  if (last.is("Not")) return before_chain(value, search, is_not, in_pairs);
  // A row of one key has a maximum too, so that only what adds an axis is taken back.
  const auto regroups = [&](const Node& node) { return has(node, Trait::kRegroups) || &node == &last; };
  if (has(last, Trait::kRegroups) || reduces_nothing(last, search.facts))
    return before_chain(value, search, regroups, [&](const Value& before) { return same_shape(before, value, search.facts); });
  if (!last.is("Cast")) return nullptr;
  Facts& facts = search.facts;
  const DataType type = facts.type(value);
  const auto widens = [&](const Node& node) {
    return node.is("Cast") && (node.outputs[0] == &value || holds(facts.type(*node.outputs[0]), type));
  };
  return before_chain(value, search, widens, [&](const Value& before) { return facts.type(before) == type; });
}

Value& seen_through(Value& value, const Search& search) {
  if (!value.producer || (value.output != 0 && !value.producer->is("Split"))) return value;
  if (search.nesting > kMaxRoundTripNesting) return source_of(value, search.facts);
  CopyNote& note = search.notes[value][static_cast<size_t>(search.nesting)];
  if (note.source && note.producer == value.producer && !note.source->removed) return *note.source;
  Value* seen = &source_of(value, search.facts);
  while (Value* before = before_round_trip(*seen, search)) seen = &source_of(*before, search.facts);
  note = {seen, value.producer};
  return *seen;
}

bool is_always(const Node&, Facts&) { return true; }
bool takes_one(const Node& node, Facts&) { return node.inputs.size() == 1; }
bool is_neutral_behind(const Node& node, Facts& facts) { return is_neutral(node, 1, facts); }
bool keeps_shape(const Node& node, Facts& facts) { return same_shape(*node.inputs[0], *node.outputs[0], facts); }
bool slices_nothing(const Node& node, Facts& facts) { return steps_are_one(node, facts) && keeps_shape(node, facts); }

using NoOpCheck = bool (*)(const Node&, Facts&);

/// By operator: when a node of it changes nothing.
constexpr OperatorMap<NoOpCheck> kNoOpChecks(std::to_array<OperatorMap<NoOpCheck>::Row>({
    {"Identity", is_always},       {"Cast", keeps_type},        {"CastLike", keeps_type},   {"Dropout", drops_nothing},
    {"Pad", pads_nothing},         {"Concat", takes_one},       {"Sum", takes_one},         {"Transpose", transposes_nothing},
    {"Add", is_neutral_behind},    {"Sub", is_neutral_behind},  {"Mul", is_neutral_behind}, {"Div", is_neutral_behind},
    {"Pow", is_neutral_behind},    {"Max", is_neutral_behind},  {"Min", is_neutral_behind}, {"And", is_neutral_behind},
    {"Or", is_neutral_behind},     {"Slice", slices_nothing},   {"Reshape", keeps_shape},   {"Expand", keeps_shape},
    {"Tile", keeps_shape},         {"Squeeze", keeps_shape},    {"Unsqueeze", keeps_shape}, {"Flatten", keeps_shape},
    {"MemcpyFromHost", is_always}, {"MemcpyToHost", is_always},
}));

}  // namespace

bool is_no_op(const Node& node, Facts& facts) {
  if (!node.domain().empty() || node.inputs.empty() || !node.inputs[0] || node.outputs.empty() || !node.outputs[0])
    return false;
  const NoOpCheck* changes_nothing = kNoOpChecks.find(node.op());
  return changes_nothing && (*changes_nothing)(node, facts);
}

bool may_be_no_op(const Node& node) {
  return node.domain().empty() && (node.is("Where") || kNoOpChecks.find(node.op()) != nullptr);
}

Value& canonical(Value& value, Facts& facts) { return seen_through(value, {facts, facts.impl_->store.copies()}); }

}  // namespace attn_opt
