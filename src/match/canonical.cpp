#include "attn_opt/canonical.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "attn_opt/operator_traits.h"
#include "src/match/cut_range.h"
#include "src/match/facts/fact_store.h"
#include "src/match/node_forms.h"
#include "src/match/operator_map.h"
#include "src/match/permutation.h"
#include "src/match/positions/whole_scatter.h"

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

/// True if NODE's input number NUMBER is the number that leaves the other operand as it is.
bool is_neutral(const Node& node, size_t number, Facts& facts) {
  if (node.inputs.size() != 2 || !node.inputs[0] || !node.inputs[1]) return false;
  const bool adds = node.is("Add") || (number == 1 && node.is("Sub"));
  const bool multiplies = !adds && (node.is("Mul") || (number == 1 && node.is("Div")));
  if (!adds && !multiplies) return false;
  return facts.uniform(*node.inputs[number]) == (adds ? 0.0 : 1.0) &&
         same_shape(*node.inputs[1 - number], *node.outputs[0], facts);
}

bool is_regrouping(const Node& node) { return has(node, Trait::kRegroups); }

/// True if every number of type FROM is one of type TO.
bool holds(DataType to, DataType from) {
  if (from == P::BOOL) return to == P::FLOAT || to == P::DOUBLE || to == P::FLOAT16 || to == P::INT32 || to == P::INT64;
  if (from == P::INT32) return to == P::INT64 || to == P::DOUBLE;
  if (from == P::FLOAT16 || from == P::BFLOAT16) return to == P::FLOAT || to == P::DOUBLE;
  return from == P::FLOAT && to == P::DOUBLE;
}

/// VALUE, or what single nodes that change nothing made it of.
Value& source_of(Value& value, Facts& facts) {
  Value* seen = &value;
  while (seen->producer && seen->output == 0) {
    const Node& node = *seen->producer;
    if (is_no_op(node, facts))
      seen = node.inputs[0];
    else if (node.domain().empty() && is_neutral(node, 0, facts))
      seen = node.inputs[1];
    else
      break;
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

/// What NODE, a ScatterND, writes over all that was there.
Value* before_scatter(const Node& node, const Search& search) {
  Value* written = written_over_all(node, search.facts);
  return written ? &seen_through(*written, {search.facts, search.notes, search.nesting + 1}) : nullptr;
}

/// What NODE, a Concat, joins the parts of in their order, which are all of it; null if it does anything else.
Value* before_concat(const Node& node, const Search& search) {
  const auto seen = [further = Search{search.facts, search.notes, search.nesting + 1}](Value& value) -> Value& {
    return seen_through(value, further);
  };
  const MaybeShape whole = search.facts.shape(*node.outputs[0]);
  const auto axis = whole ? axis_in(node.int_attribute("axis", 0), whole->size()) : std::nullopt;
  const auto joined = axis ? joined_range(node.inputs, *axis, seen, search.facts) : std::nullopt;
  return joined && same_shape(*joined->source, *node.outputs[0], search.facts) ? joined->source : nullptr;
}

/// What VALUE is a copy of by several nodes of which the last undo what the first did; null if it is none.
Value* before_round_trip(Value& value, const Search& search) {
  if (!value.producer || value.output != 0) return nullptr;
  const Node& last = *value.producer;
  const auto is_not = [](const Node& node) { return node.is("Not"); };
  const auto in_pairs = [calls = 0](const Value&) mutable { return ++calls % 2 == 0; };
  if (last.is("Transpose")) return before_transposes(value, search);
  if (last.is("Concat")) return before_concat(last, search);
  if (last.is("ConcatFromSequence")) return before_sequence(last, search);
  if (last.is("ScatterND")) return before_scatter(last, search);
  if (last.is("Not")) return before_chain(value, search, is_not, in_pairs);
  if (is_regrouping(last))
    return before_chain(value, search, is_regrouping,
                        [&](const Value& before) { return same_shape(before, value, search.facts); });
  if (!last.is("Cast")) return nullptr;
  Facts& facts = search.facts;
  const DataType type = facts.type(value);
  const auto widens = [&](const Node& node) {
    return node.is("Cast") && (node.outputs[0] == &value || holds(facts.type(*node.outputs[0]), type));
  };
  return before_chain(value, search, widens, [&](const Value& before) { return facts.type(before) == type; });
}

Value& seen_through(Value& value, const Search& search) {
  if (!value.producer || value.output != 0) return value;
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
    {"Identity", is_always},     {"Cast", keeps_type},       {"CastLike", keeps_type},   {"Dropout", drops_nothing},
    {"Pad", pads_nothing},       {"Concat", takes_one},      {"Sum", takes_one},         {"Transpose", transposes_nothing},
    {"Add", is_neutral_behind},  {"Sub", is_neutral_behind}, {"Mul", is_neutral_behind}, {"Div", is_neutral_behind},
    {"Slice", slices_nothing},   {"Reshape", keeps_shape},   {"Expand", keeps_shape},    {"Tile", keeps_shape},
    {"Squeeze", keeps_shape},    {"Unsqueeze", keeps_shape}, {"Flatten", keeps_shape},   {"MemcpyFromHost", is_always},
    {"MemcpyToHost", is_always},
}));

}  // namespace

bool is_no_op(const Node& node, Facts& facts) {
  if (!node.domain().empty() || node.inputs.empty() || !node.inputs[0] || node.outputs.empty() || !node.outputs[0])
    return false;
  const NoOpCheck* changes_nothing = kNoOpChecks.find(node.op());
  return changes_nothing && (*changes_nothing)(node, facts);
}

bool may_be_no_op(const Node& node) { return node.domain().empty() && kNoOpChecks.find(node.op()) != nullptr; }

Value& canonical(Value& value, Facts& facts) { return seen_through(value, {facts, facts.impl_->store.copies()}); }

}  // namespace attn_opt
