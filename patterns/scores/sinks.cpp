#include "patterns/scores/sinks.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "attn_opt/canonical.h"
#include "patterns/inner_values.h"
#include "patterns/layout_checks.h"
#include "patterns/preconditions.h"

namespace attn_opt {
namespace {

constexpr int kMaxExpands = 4;
/// Sinks within this keep all of a row's weight where masks leave it no key.
constexpr double kFarFromFills = 100;

/// Pads with a number in places that are numbers or a value of one integer.
class Padding {
 public:
  Padding(const SinkColumns& columns, Node& reader, MatchContext& context)
      : columns_(columns), reader_(reader), inner_(reader, context), facts_(context.facts) {}

  InnerValues& inner() { return inner_; }

  /// VALUE with as many more entries along AXIS as there are sinks, which are 0.
  Value* widened(Value& value, size_t axis) { return widened(value, axis, nullptr); }

  /// The same of sinks that are 1. Miss: "scores.sinks", of a value whose type is not known.
  Matched<Value*> widened_by_ones(Value& value, size_t axis) {
    const DataType type = facts_.type(value);
    if (type == onnx::TensorProto::UNDEFINED)
      return missed("scores.sinks", &reader_, "beside '" + value.name + "', whose type is not known");
    return widened(value, axis, inner_.number(1, type));
  }

  /// VALUE with COUNT entries along AXIS, of which it has as many or one.
  Value* stretched(Value& value, size_t axis, Value* count) {
    const size_t behind = std::max<size_t>(1, facts_.shape(value).known().size()) - 1 - axis;
    std::vector<Value*> sizes{count};
    if (axis > 0) sizes.insert(sizes.begin(), inner_.build().ints(std::vector<int64_t>(axis, 1)));
    if (behind > 0) sizes.push_back(inner_.build().ints(std::vector<int64_t>(behind, 1)));
    return inner_.build().node("Expand", {&value, sizes.size() == 1 ? count : inner_.concat(sizes, 0)});
  }

  /// SINKS with zeros where the KEYS stand.
  Value* among_keys(Value& sinks, Value* keys) {
    return padded(sinks, facts_.shape(sinks).known().size() - 1, keys, !columns_.in_front, nullptr);
  }

 private:
  Value* widened(Value& value, size_t axis, Value* number) {
    return padded(value, axis, inner_.build().ints({columns_.count}), columns_.in_front, number);
  }

  /// COUNT: int64 [1]; NUMBER: rank 0, null for 0.
  Value* padded(Value& value, size_t axis, Value* count, bool in_front, Value* number) {
    std::vector<Value*> inputs{&value, pads_of(facts_.shape(value).known().size(), axis, count, in_front)};
    if (number) inputs.push_back(number);
    return inner_.build().node("Pad", inputs);
  }

  /// 2 * RANK integers, of which that of AXIS at one end is COUNT and all others are 0.
  Value* pads_of(size_t rank, size_t axis, Value* count, bool in_front) {
    const size_t at = axis + (in_front ? 0 : rank);
    std::vector<int64_t> pads(2 * rank, 0);
    if (const IntegerData* number = facts_.integers(*count); number && number->values[0].is_constant()) {
      pads[at] = number->values[0].value();
      return inner_.build().ints(pads);
    }
    std::vector<Value*> parts{count};
    if (at > 0) parts.insert(parts.begin(), inner_.build().ints(std::vector<int64_t>(at, 0)));
    if (at + 1 < pads.size()) parts.push_back(inner_.build().ints(std::vector<int64_t>(pads.size() - at - 1, 0)));
    return inner_.concat(parts, 0);
  }

  SinkColumns columns_;
  Node& reader_;
  InnerValues inner_;
  Facts& facts_;
};

/// The axis of VIEW that holds its rows alone.
std::optional<size_t> row_axis(const OperandView& view) {
  for (size_t axis = 0; axis < view.axes.rank(); ++axis)
    if (view.axes.with_size(Role::kRow, axis, 1)) return axis;
  return std::nullopt;
}

/// The views of OPERAND, perhaps of one that is multiplied with a number, that have all rows on an axis of their own.
std::vector<OperandView> views_of_rows(const Operand& operand, bool may_scale) {
  std::vector<OperandView> views = operand.views;
  std::erase_if(views,
                [&](const OperandView& view) { return view.past || !row_axis(view) || (!may_scale && view.scale != 1); });
  return views;
}

/// What an Expand that adds nothing but copies of the sinks reads.
Value& unexpanded(Value& sinks, int64_t count, Facts& facts) {
  Value* seen = &canonical(sinks, facts);
  for (int step = 0; step < kMaxExpands && seen->producer && seen->producer->is("Expand"); ++step) {
    Value& before = canonical(*seen->producer->inputs[0], facts);
    const MaybeShape shape = facts.shape(before);
    if (!shape || shape->empty() || shape->back() != count) break;
    seen = &before;
  }
  return *seen;
}

/// A value of one integer: how many keys KEYS has along AXIS.
Value* count_of(const OperandView& keys, size_t axis, Padding& padding) {
  const Dim rows = keys.axes.size(Role::kRow);
  if (rows.is_constant()) return padding.inner().build().ints({rows.value()});
  return padding.inner().size(*keys.value, static_cast<int64_t>(axis));
}

/// How many keys there are: as many as V has rows, since these are multiplied by what a mask of other sizes broadcasts to.
struct KeyCount {
  Dim size;
  Value* value;  ///< int64 [1]
};

/// TERM, of the keys, which is nothing to the sinks.
Matched<void> widen(ScoreTerm& term, const SinkColumns& columns, const KeyCount& keys, Padding& padding, Node& reader,
                    MatchContext& context) {
  const auto miss = [&](const char* why) { return missed("scores.sinks", &reader, why); };
  if (!term.parts.values.empty() && term.parts.key_axes != 1) return miss("beside a bias of split scores");
  const MaybeShape shape = context.facts.shape(*term.value);
  if (!shape || term.frame.empty()) return miss("beside a mask whose rank is not known");
  if (term.kind == ScoreTerm::Kind::kFloor) {
    // The keys of sinks have scores of 0, which are above every floor.
    if (std::ranges::any_of(*shape, [](const Dim& size) { return !size.is(1); }))
      return miss("beside a floor that is no number");
    term.frame.back() = term.frame.back() + columns.count;
    return {};
  }
  const size_t rank = std::max<size_t>(1, shape->size());
  const bool has_keys = !shape->empty() && shape->back() == keys.size;
  Value& full = has_keys ? *term.value : *padding.stretched(*term.value, rank - 1, keys.value);
  if (term.kind == ScoreTerm::Kind::kBias && term.parts.values.empty()) term.parts = {{term.value}, 1};
  if (term.kind == ScoreTerm::Kind::kKeep) {
    ATTN_OPT_MATCH(term.value, padding.widened_by_ones(full, rank - 1));
  } else {
    term.value = padding.widened(full, rank - 1);
  }
  term.frame.back() = term.frame.back() + columns.count;
  return {};
}

/// FACTOR, one of the keys, which is 1 for the sinks: their keys are 0 whatever they are multiplied with.
Matched<void> widen(TensorScale& factor, const SinkColumns& columns, const KeyCount& keys, Padding& padding, Node& reader,
                    MatchContext& context) {
  const MaybeShape shape = context.facts.shape(*factor.value);
  if (!shape) return missed("scores.sinks", &reader, "beside a factor whose rank is not known");
  if (!factor.frame.empty()) factor.frame.back() = factor.frame.back() + columns.count;
  if (!factor.on_key || shape->empty() || shape->back().is(1)) return {};
  if (!is_taken_for(shape->back(), keys.size, context.facts))
    return missed("scores.sinks", &reader, "beside a factor of other keys");
  Value& full = shape->back() == keys.size ? *factor.value : *padding.stretched(*factor.value, shape->size() - 1, keys.value);
  ATTN_OPT_MATCH(factor.value, padding.widened_by_ones(full, shape->size() - 1));
  return {};
}

}  // namespace

Matched<void> add_sinks(const JoinedSinks& sinks, Sdpa& sdpa, Node& reader, MatchContext& context) {
  const SinkColumns& columns = sinks.columns;
  const auto miss = [&](const char* why) { return missed("scores.sinks", &reader, why); };
  Padding padding(columns, reader, context);
  Value& column = unexpanded(*sinks.value, columns.count, context.facts);
  sdpa.k.views = views_of_rows(sdpa.k, true);
  sdpa.v.views = views_of_rows(sdpa.v, false);
  if (sdpa.k.views.empty() || sdpa.v.views.empty()) return miss("keys or values whose rows have no axis of their own");
  const OperandView& values = sdpa.v.views.back();
  const KeyCount count{values.axes.size(Role::kRow), count_of(values, *row_axis(values), padding)};
  const Dim all = count.size + columns.count;
  const auto outer = sdpa.terms.end() - static_cast<std::ptrdiff_t>(sinks.terms);
  for (auto term = sdpa.terms.begin(); term != outer; ++term)
    ATTN_OPT_DONE(widen(*term, columns, count, padding, reader, context));
  for (TensorScale& factor : sdpa.tensor_scales) ATTN_OPT_DONE(widen(factor, columns, count, padding, reader, context));
  Value* added = padding.among_keys(column, count.value);
  for (Operand* operand : {&sdpa.k, &sdpa.v})
    for (OperandView& view : operand->views) {
      const size_t axis = *row_axis(view);
      if (view.axes.size(Role::kRow) != count.size) view.value = padding.stretched(*view.value, axis, count.value);
      view.value = padding.widened(*view.value, axis);
      view.axes = *view.axes.with_size(Role::kRow, axis, all);
    }
  ScoreTerm term;
  term.value = added;
  term.coefficient = sinks.scale;
  term.parts = {{&column}, 1};
  term.frame = sinks.frame;
  term.frame.back() = all;
  sdpa.terms.insert(outer, std::move(term));
  return {};
}

void assume_of_sinks(const JoinedSinks& sinks, Sdpa& sdpa, MatchContext& context) {
  const Tensor* numbers = context.facts.constant(unexpanded(*sinks.value, sinks.columns.count, context.facts));
  const auto is_near_zero = [&](double number) { return std::abs(sinks.scale * number) <= kFarFromFills; };
  if (numbers && sinks.terms == 0 &&
      std::ranges::all_of(numbers->cast(onnx::TensorProto::DOUBLE)->data<double>(), is_near_zero))
    for (Precondition& condition : sdpa.preconditions)
      if (condition.id == "rows-keep-a-key") condition = {condition.id, true, "the sinks are kept"};
  assume_scores_finite("keys of zeros stand for sinks", sdpa);
}

}  // namespace attn_opt
