// What is taken out of sequences of tensors: a sequence itself has no shape, so that what made it is looked at.
//
//   SequenceAt(SplitToSequence(x, n), i)  =>  Slice(x, i * n, (i + 1) * n)
//   ConcatFromSequence(SequenceConstruct(a, b))  =>  Concat(a, b)
//   ConcatFromSequence(SplitToSequence(x))  =>  x
#include <algorithm>

#include "src/match/node_forms.h"

namespace attn_opt {
namespace {

/// The node that makes the sequence which the first input is; null unless it is an OP_TYPE.
const Node* maker_of_sequence(const RuleContext& context, std::string_view op_type) {
  const Node* maker = context.has(0) ? context.node().inputs[0]->producer : nullptr;
  return maker && maker->is(op_type) && maker->input(0) ? maker : nullptr;
}

/// Piece number PLACE, which counts from the end if it is less than 0, of an axis of SIZE cut into pieces of LENGTH; nullopt
/// where that is not known.
std::optional<Dim> equal_piece(const Dim& size, int64_t length, int64_t place) {
  if (!size.is_constant() || length < 1) return std::nullopt;
  const int64_t count = (size.value() + length - 1) / length, at = place < 0 ? place + count : place;
  return at >= 0 && at < count ? std::optional<Dim>(std::min(length, size.value() - at * length)) : std::nullopt;
}

/// The same of pieces of LENGTHS: one number for all, or one for each.
std::optional<Dim> piece(const Dim& size, const IntegerData& lengths, int64_t place) {
  if (lengths.dims.empty())
    return lengths.values[0].is_constant() ? equal_piece(size, lengths.values[0].value(), place) : std::nullopt;
  const int64_t count = std::ssize(lengths.values), at = place < 0 ? place + count : place;
  if (at < 0 || at >= count || !lengths.values[static_cast<size_t>(at)].may_be_size()) return std::nullopt;
  return lengths.values[static_cast<size_t>(at)];
}

/// What SPLIT, a SplitToSequence, puts at PLACE, if that is known.
void set_piece(RuleContext& context, const Node& split, std::optional<int64_t> place) {
  FactStore& store = context.store();
  const ValueFact& whole = store.computed(*split.inputs[0]);
  context.set_type(0, whole.type);
  const auto axis = whole.shape ? axis_in(split.int_attribute("axis", 0), whole.shape->size()) : std::nullopt;
  if (!axis) return;
  Shape shape = *whole.shape;
  if (!split.input(1)) {
    shape[*axis] = 1;
    if (split.int_attribute("keepdims", 1) == 0) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(*axis));
  } else {
    const IntegerData* lengths = store.elements(*split.inputs[1]);
    const bool is_known = lengths && !lengths->values.empty() && place;
    const auto size = is_known ? piece(shape[*axis], *lengths, *place) : std::nullopt;
    shape[*axis] = size ? *size : context.fresh(0, *axis);
  }
  context.set_shape(0, std::move(shape));
}

void sequence_at(RuleContext& context) {
  const auto numbers = context.numbers(1);
  const auto place = numbers && numbers->size() == 1 ? std::optional(numbers->front()) : std::nullopt;
  if (const Node* split = maker_of_sequence(context, "SplitToSequence")) return set_piece(context, *split, place);
  const Node* construct = maker_of_sequence(context, "SequenceConstruct");
  if (!construct || !place) return;
  const auto at = axis_in(*place, construct->inputs.size());
  if (at && construct->inputs[*at]) context.set_same(0, *construct->inputs[*at]);
}

void concat_from_sequence(RuleContext& context) {
  const auto rank = [&](const Value& value) -> std::optional<size_t> {
    const ValueFact& fact = context.store().computed(value);
    return fact.shape ? std::optional(fact.shape->size()) : std::nullopt;
  };
  if (const Value* whole = cut_and_joined(context.node(), rank)) return context.set_same(0, *whole);
  if (const Node* split = maker_of_sequence(context, "SplitToSequence"))
    return context.set_type(0, context.store().computed(*split->inputs[0]).type);
  const Node* construct = maker_of_sequence(context, "SequenceConstruct");
  if (!construct || std::ranges::count(construct->inputs, nullptr) > 0) return;
  std::vector<MaybeShape> parts;
  for (const Value* part : construct->inputs) parts.push_back(shape_of(context.store().computed(*part)));
  context.set_type(0, context.store().computed(*construct->inputs[0]).type);
  const int64_t axis = context.node().int_attribute("axis", 0);
  if (context.node().int_attribute("new_axis", 0) == 0) {
    if (auto joined = joined_shape(parts, axis, context)) context.set_shape(0, *std::move(joined));
  } else if (parts[0]) {
    Shape shape = parts[0].known();
    const auto at = axis_in(axis, shape.size() + 1);
    if (!at) return;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*at), Dim(std::ssize(parts)));
    context.set_shape(0, std::move(shape));
  }
}

constexpr ShapeRule kSequences[] = {
    {"SequenceAt", sequence_at, ResultType::kSetByRule},
    {"ConcatFromSequence", concat_from_sequence, ResultType::kSetByRule},
};

}  // namespace

std::span<const ShapeRule> sequence_rules() { return kSequences; }

}  // namespace attn_opt
