// Operators that pick elements: Slice, Gather, TopK, ...
#include <algorithm>
#include <limits>

#include "src/match/node_forms.h"
#include "src/match/shape_rules/slice_bounds.h"

namespace attn_opt {
namespace {

constexpr int64_t kFarAway = int64_t{1} << 30;  // exporters write the end of an axis as INT32_MAX or INT64_MAX

/// True if it is usual that there are N among SIZE elements.
bool is_usual(const Dim& n, const Dim& size) { return n.is(1) || (size.is_constant() && !n.is_constant()); }

/// min(N, SIZE) elements, N of them where that is proven or the usual meaning (then it is assumed).
Dim taken(const RuleContext& context, const Dim& n, const Dim& size) {
  if ((size - n).never_negative()) return n;
  if ((n - size).never_negative()) return size;
  return is_usual(n, size) && context.assume_equal(n, minimum(n, size)) ? n : minimum(n, size);
}

/// An index that counts from the end of an axis, as the number of elements from there to the end.
std::optional<Dim> from_end(const Dim& index) {
  const Dim count = Dim(0) - index;
  if (index.is_constant()) return index.value() < 0 ? std::optional(count) : std::nullopt;
  return count.never_negative() ? std::optional(count) : std::nullopt;
}

/// False if INDEX counts from the start or from the end, by its sign, and neither may be assumed.
bool has_one_meaning(const RuleContext& context, const Dim& index) {
  if (index.is_constant()) return true;
  if (const Dim count = Dim(0) - index; count.never_negative()) return context.assume_equal(count, maximum(count, 1));
  return context.assume_equal(index, maximum(index, 0));
}

/// LENGTH, that from BEGIN to END, or none where it is negative. A Slice is taken to begin in its axis, which makes sizes
/// simpler, and known in more places, but where another is beside it.
Dim left_over(const RuleContext& context, const Dim& length, const Dim& begin, const Dim& end, const Dim& size) {
  if (length.never_negative()) return length;
  const Dim& cut = begin.is(0) ? end : begin;
  const bool is_taken = is_usual(from_end(cut).value_or(cut), size);
  return !is_taken && has_part_beside(context, begin, end) ? maximum(length, 0) : context.not_negative(length);
}

/// Elements from BEGIN to END with step 1 of an axis of SIZE.
std::optional<Dim> unit_slice(const RuleContext& context, const Dim& begin, const Dim& end, const Dim& size) {
  if (!begin.from_sizes() || !end.from_sizes()) return std::nullopt;
  const bool from_start = begin.is(0) || (begin.is_constant() && begin.value() <= -kFarAway);
  const bool to_end = (end.is_constant() && end.value() >= kFarAway) || end == size;
  if (from_start && to_end) return size;
  if (end.is_constant() && end.value() <= -kFarAway) return Dim(0);
  if (!(from_start || has_one_meaning(context, begin)) || !(to_end || has_one_meaning(context, end))) return std::nullopt;
  const std::optional<Dim> kept = from_start ? std::nullopt : from_end(begin);
  const std::optional<Dim> dropped = to_end ? std::nullopt : from_end(end);
  if (kept) {
    Dim last = taken(context, *kept, size);
    if (to_end) return last;
    return dropped ? std::optional(context.not_negative(last - *dropped)) : std::nullopt;
  }
  const Dim first = from_start ? Dim(0) : context.not_negative(begin);
  if (to_end) return left_over(context, size - first, begin, end, size);
  const Dim stop = dropped ? size - *dropped : taken(context, context.not_negative(end), size);
  return left_over(context, stop - first, begin, end, size);
}

/// As ONNX defines it, for numbers.
int64_t numeric_slice(int64_t begin, int64_t end, int64_t step, int64_t size) {
  const auto clamped = [&](int64_t at, int64_t low, int64_t high) {
    if (at < 0) at += size;
    return std::min(std::max(at, low), high);
  };
  if (size == 0) return 0;
  if (step > 0) {
    const int64_t span = clamped(end, 0, size) - clamped(begin, 0, size);
    return span <= 0 ? 0 : (span - 1) / step + 1;
  }
  const int64_t span = clamped(begin, 0, size - 1) - clamped(end, -1, size - 1);
  if (step == std::numeric_limits<int64_t>::min()) return span > 0 ? 1 : 0;
  return span <= 0 ? 0 : (span - 1) / -step + 1;
}

std::optional<Dim> sliced(const RuleContext& context, const Dim& begin, const Dim& end, int64_t step, const Dim& size) {
  if (step == 0) return std::nullopt;
  if (begin.is_constant() && end.is_constant() && size.is_constant()) {
    return numeric_slice(begin.value(), end.value(), step, size.value());
  }
  if (step == 1) return unit_slice(context, begin, end, size);
  if (step == -1) {
    const bool whole = begin.is(-1) && end.is_constant() && end.value() <= -kFarAway;
    return whole ? std::optional(size) : std::nullopt;
  }
  if (step < 0 || step > kFarAway) return std::nullopt;
  const std::optional<Dim> span = unit_slice(context, begin, end, size);
  return span ? std::optional(floor_quotient(*span + (step - 1), step)) : std::nullopt;
}

void slice(RuleContext& context) {
  const MaybeShape shape = context.shape(0);
  if (!shape) return;
  const SliceBounds bounds = bounds_of(context);
  if (!bounds.axes) return context.set_shape(0, context.fresh_shape(0, shape->size()));
  Shape result = *shape;
  const std::vector<int64_t>& axes = *bounds.axes;
  const bool known = bounds.begins.size() == axes.size() && bounds.ends.size() == axes.size() && bounds.steps &&
                     bounds.steps->size() == axes.size();
  for (size_t i = 0; i < axes.size(); ++i) {
    const std::optional<size_t> axis = axis_in(axes[i], shape->size());
    if (!axis) return;
    std::optional<Dim> size;
    if (known) size = sliced(context, bounds.begins[i], bounds.ends[i], (*bounds.steps)[i], result[*axis]);
    result[*axis] = size ? *std::move(size) : context.fresh(0, *axis);
  }
  if (known && result == *shape && std::all_of(bounds.steps->begin(), bounds.steps->end(), [](int64_t s) { return s > 0; })) {
    return context.set_same(0, *context.node().inputs[0]);
  }
  context.set_shape(0, std::move(result));
}

void gather(RuleContext& context) {
  const MaybeShape data = context.shape(0);
  const MaybeShape indices = context.shape(1);
  if (!data || !indices) return;
  const std::optional<size_t> axis = axis_in(context.node().int_attribute("axis", 0), data->size());
  if (!axis) return;
  Shape result(data->begin(), data->begin() + static_cast<std::ptrdiff_t>(*axis));
  result.insert(result.end(), indices->begin(), indices->end());
  result.insert(result.end(), data->begin() + static_cast<std::ptrdiff_t>(*axis) + 1, data->end());
  context.set_shape(0, std::move(result));
}

void gather_elements(RuleContext& context) {
  if (const MaybeShape indices = context.shape(1)) context.set_shape(0, *indices);
}

void gather_nd(RuleContext& context) {
  const MaybeShape data = context.shape(0);
  const MaybeShape indices = context.shape(1);
  if (!data || !indices || indices->empty() || !indices->back().is_constant()) return;
  const int64_t batch = context.node().int_attribute("batch_dims", 0);
  const int64_t depth = indices->back().value();
  if (batch < 0 || depth < 0 || batch > kMaxIntegers || depth > kMaxIntegers) return;
  if (static_cast<size_t>(batch + depth) > data->size()) return;
  Shape result(indices->begin(), indices->end() - 1);
  result.insert(result.end(), data->begin() + static_cast<std::ptrdiff_t>(batch + depth), data->end());
  context.set_shape(0, std::move(result));
}

void top_k(RuleContext& context) {
  context.set_type(1, onnx::TensorProto::INT64);
  const MaybeShape shape = context.shape(0);
  if (!shape) return;
  const std::optional<size_t> axis = axis_in(context.node().int_attribute("axis", -1), shape->size());
  if (!axis) return;
  Dim count = context.fresh(0, *axis);
  if (context.node().attribute("k")) {
    count = context.node().int_attribute("k", 0);
  } else if (const IntegerData* k = context.elements(1); k && k->values.size() == 1) {
    count = context.not_negative(k->values[0]);
  }
  Shape result = *shape;
  result[*axis] = count;
  context.set_shape(1, result);
  context.set_shape(0, std::move(result));
}

constexpr ShapeRule kIndexingRules[] = {
    {"Slice", slice}, {"Gather", gather}, {"GatherElements", gather_elements}, {"GatherND", gather_nd}, {"TopK", top_k},
};

}  // namespace

std::span<const ShapeRule> indexing_rules() { return kIndexingRules; }

}  // namespace attn_opt
