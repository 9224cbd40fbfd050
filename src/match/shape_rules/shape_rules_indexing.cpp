// Operators that pick elements: Slice, Gather, TopK, ...
#include <algorithm>
#include <limits>

#include "src/match/node_forms.h"

namespace attn_opt {
namespace {

constexpr int64_t kFarAway = int64_t{1} << 30;  // exporters write the end of an axis as INT32_MAX or INT64_MAX

/// min(N, SIZE) elements, N of them where that is proven or the usual meaning (then it is assumed).
Dim taken(const RuleContext& context, const Dim& n, const Dim& size) {
  if ((size - n).never_negative()) return n;
  if ((n - size).never_negative()) return size;
  const bool usual = n.is(1) || (size.is_constant() && !n.is_constant());
  return usual && context.assume_equal(n, minimum(n, size)) ? n : minimum(n, size);
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

struct SliceBounds {
  std::vector<Dim> begins, ends;  // empty: not known
  std::optional<std::vector<int64_t>> axes, steps;
};

std::vector<Dim> dims_of(const IntegerList& list, const IntegerData* elements) {
  if (elements) return elements->values;
  return list.values ? std::vector<Dim>(list.values->begin(), list.values->end()) : std::vector<Dim>();
}

SliceBounds bounds_of(const RuleContext& context) {
  const bool by_attribute = context.node().ints_attribute("starts") != nullptr;
  SliceBounds bounds;
  bounds.begins = dims_of(integer_list(context, "starts", 1), by_attribute ? nullptr : context.elements(1));
  bounds.ends = dims_of(integer_list(context, "ends", 2), by_attribute ? nullptr : context.elements(2));
  const IntegerList axes = integer_list(context, "axes", 3);
  bounds.axes = axes.values;
  if (!axes.given) {
    const MaybeShape starts = by_attribute ? nullptr : context.shape(1);
    const bool counted = starts && starts->size() == 1 && (*starts)[0].is_constant();
    const size_t count = !bounds.begins.empty() ? bounds.begins.size()
                         : counted              ? static_cast<size_t>((*starts)[0].value())
                                                : context.shape(0).known().size();
    const std::vector<size_t> leading = all_axes(std::min(count, context.shape(0).known().size()));
    bounds.axes.emplace(leading.begin(), leading.end());
  }
  const IntegerList steps = integer_list(context, "steps", 4);
  bounds.steps = steps.values;
  if (!steps.given && bounds.axes) bounds.steps.emplace(bounds.axes->size(), 1);
  return bounds;
}

/// What SLICE, beside the node of CONTEXT, says, as far as that is known before it is come to.
SliceBounds known_bounds(const RuleContext& context, const Node& slice) {
  for (const Value* input : slice.inputs)
    if (input && input->producer && input->producer->is("Constant")) context.store().fact(*input);
  return bounds_of(RuleContext(context.store(), slice));
}

/// True if another slice of what the node cuts along AXIS ends where it begins, or begins where it ends: together they are as
/// long as both, however long each is. Elsewhere a slice is taken to begin in its axis, which makes sizes simpler, and known in
/// more places.
bool is_beside_another(const RuleContext& context, size_t axis, const Dim& begin, const Dim& end) {
  constexpr size_t kMaxReaders = 32;
  const Value& whole = *context.node().inputs[0];
  const size_t rank = context.shape(0).known().size();
  if (whole.uses.size() < 2 || whole.uses.size() > kMaxReaders) return false;
  return std::ranges::any_of(whole.uses, [&](const Use& use) {
    if (!use.node || use.node == &context.node() || use.input != 0 || !use.node->is("Slice")) return false;
    const SliceBounds other = known_bounds(context, *use.node);
    for (size_t i = 0; other.axes && i < std::min({other.axes->size(), other.begins.size(), other.ends.size()}); ++i)
      if (axis_in((*other.axes)[i], rank) == axis && (other.ends[i] == begin || other.begins[i] == end)) return true;
    return false;
  });
}

/// LENGTH, or none where it is negative.
Dim left_over(const RuleContext& context, const Dim& length, size_t axis, const Dim& begin, const Dim& end) {
  if (length.never_negative()) return length;
  return is_beside_another(context, axis, begin, end) ? maximum(length, 0) : context.not_negative(length);
}

/// Elements from BEGIN to END with step 1 of AXIS, of SIZE.
std::optional<Dim> unit_slice(const RuleContext& context, size_t axis, const Dim& begin, const Dim& end, const Dim& size) {
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
  if (to_end) return left_over(context, size - first, axis, begin, end);
  const Dim stop = dropped ? size - *dropped : taken(context, context.not_negative(end), size);
  return left_over(context, stop - first, axis, begin, end);
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

std::optional<Dim> sliced(const RuleContext& context, size_t axis, const Dim& begin, const Dim& end, int64_t step,
                          const Dim& size) {
  if (step == 0) return std::nullopt;
  if (begin.is_constant() && end.is_constant() && size.is_constant()) {
    return numeric_slice(begin.value(), end.value(), step, size.value());
  }
  if (step == 1) return unit_slice(context, axis, begin, end, size);
  if (step == -1) {
    const bool whole = begin.is(-1) && end.is_constant() && end.value() <= -kFarAway;
    return whole ? std::optional(size) : std::nullopt;
  }
  if (step < 0 || step > kFarAway) return std::nullopt;
  const std::optional<Dim> span = unit_slice(context, axis, begin, end, size);
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
    if (known) size = sliced(context, *axis, bounds.begins[i], bounds.ends[i], (*bounds.steps)[i], result[*axis]);
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
