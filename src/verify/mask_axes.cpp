#include "src/verify/mask_axes.h"

#include <algorithm>

#include "src/match/cut_range.h"

namespace attn_opt {
namespace {

/// True if VALUE, which a description made, is computed from what INPUT holds.
bool is_made_from(const Value& value, const Value& input, int depth = 0) {
  constexpr int kMaxDepth = 8;
  if (!value.is_new || !value.producer || depth == kMaxDepth) return false;
  if (value.producer->is("Shape") || value.producer->is("Size")) return false;
  const auto& inputs = value.producer->inputs;
  return std::ranges::any_of(
      inputs, [&](const Value* read) { return read && (read == &input || is_made_from(*read, input, depth + 1)); });
}

bool is_part_of(const ScoreTerm& term, const Value& value) {
  return term.kind == ScoreTerm::Kind::kBias && std::ranges::find(term.parts.values, &value) != term.parts.values.end();
}

/// The axis, counted from the last, that holds the keys in what TERM's value is moved from, a value of SHAPE: where axes are
/// regrouped on the way that of as many.
size_t keys_from_last(const ScoreTerm& term, const Shape& shape) {
  size_t from_last = 0;
  for (const Value* value = term.value; value && value->is_new && value->producer; value = value->producer->input(0)) {
    if (value->producer->is("Reshape") && !term.frame.empty())
      for (size_t axis = 0; axis < shape.size(); ++axis)
        if (shape[shape.size() - 1 - axis] == term.frame.back()) return axis;
    if (!value->producer->is("Transpose")) continue;
    const auto* perm = value->producer->ints_attribute("perm");
    if (!perm || static_cast<int>(from_last) >= perm->size()) continue;
    const int last = perm->size() - 1;
    from_last = static_cast<size_t>(last - perm->Get(last - static_cast<int>(from_last)));
  }
  return from_last;
}

/// True if a description picks rows, heads or batch elements for TERM: its value has fewer than what it is made from.
bool is_picked(const ScoreTerm& term) {
  for (const Value* value = term.value; value && value->is_new && value->producer; value = value->producer->input(0))
    if (cuts_out(*value->producer)) return true;
  return false;
}

/// True if SIZE is OTHER, or may be: a mask has the keys of a cache by a name of its own.
bool may_be_as_many(const Dim& size, const Dim& other) { return size == other || !(size.is_constant() || other.is_constant()); }

/// True if INPUT is of the form of TERM, a bias that a description transposed it for, or picked of it.
bool is_turned_for(const ScoreTerm& term, const SiteInput& input) {
  if (term.kind != ScoreTerm::Kind::kBias || input.shape.empty() || term.frame.size() < 2) return false;
  const size_t from_last = keys_from_last(term, input.shape);
  if (from_last >= input.shape.size()) return false;
  const size_t keys = input.shape.size() - 1 - from_last;
  if (!may_be_as_many(input.shape[keys], term.frame.back())) return false;
  Shape others = input.shape;
  others[keys] = 1;
  const auto is_part = [&](const Dim& size) {  // heads or queries may be put together with others
    return std::any_of(term.frame.begin(), term.frame.end() - 1,
                       [&](const Dim& whole) { return exact_quotient(whole, size).has_value(); });
  };
  const bool is_of_frame = std::ranges::all_of(others, [&](const Dim& size) { return size.is(1) || is_part(size); });
  return (is_of_frame || is_picked(term)) && is_made_from(*term.value, *input.value);
}

}  // namespace

AxisRange key_axes_of_mask(const SiteInput& input, const Sdpa& sdpa) {
  const Value& value = *input.value;
  const size_t rank = input.shape.size();
  if (rank == 0) return {};
  for (const ScoreTerm& term : sdpa.terms) {
    if (is_part_of(term, value)) return {rank - std::min(term.parts.key_axes, rank), rank};
    if (!is_made_from(*term.value, value)) continue;
    const size_t axis = rank - 1 - std::min(keys_from_last(term, input.shape), rank - 1);
    return {axis, axis + 1};
  }
  return {rank - 1, rank};
}

bool is_picked_from(const Value& value, const Sdpa& sdpa) {
  return std::ranges::any_of(sdpa.terms,
                             [&](const ScoreTerm& term) { return is_picked(term) && is_made_from(*term.value, value); });
}

const ScoreTerm* bias_made_from(const SiteInput& input, const Sdpa& sdpa) {
  if (!is_floating(input.type)) return nullptr;
  const auto term = std::ranges::find_if(
      sdpa.terms, [&](const ScoreTerm& bias) { return is_part_of(bias, *input.value) || is_turned_for(bias, input); });
  return term == sdpa.terms.end() ? nullptr : &*term;
}

}  // namespace attn_opt
