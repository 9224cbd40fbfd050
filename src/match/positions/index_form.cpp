#include "src/match/positions/index_form.h"

#include <algorithm>

namespace attn_opt {
namespace {

/// ONE + TIMES * OTHER.
std::optional<ListedLength> sum(const ListedLength& one, const ListedLength& other, int64_t times) {
  if (!other.value) return one;
  ListedLength result = other;
  if (__builtin_mul_overflow(other.times, times, &result.times)) return std::nullopt;
  if (one.value) {
    if (one.value != other.value || one.axis != other.axis) return std::nullopt;
    if (__builtin_add_overflow(result.times, one.times, &result.times)) return std::nullopt;
  }
  return result.times == 0 ? ListedLength{} : result;
}

}  // namespace

void IndexForm::set_factor(size_t axis, int64_t factor) {
  if (axis >= factors.size()) factors.resize(axis + 1);
  factors[axis] = factor;
  while (!factors.empty() && factors.back() == 0) factors.pop_back();
}

std::optional<IndexForm> sum(const IndexForm& one, const IndexForm& other, int64_t times) {
  IndexForm result = one;
  result.offset = one.offset + other.offset * times;
  const auto length = sum(one.length, other.length, times);
  if (!length) return std::nullopt;
  result.length = *length;
  const size_t axes = std::max(one.factors.size(), other.factors.size());
  for (size_t axis = 0; axis < axes; ++axis) {
    int64_t factor = 0;
    if (__builtin_mul_overflow(other.factor(axis), times, &factor) || __builtin_add_overflow(factor, one.factor(axis), &factor))
      return std::nullopt;
    result.set_factor(axis, factor);
  }
  return result;
}

std::optional<IndexForm> substituted(const IndexForm& form, size_t axis, const Dim& start, int64_t step) {
  const int64_t factor = form.factor(axis);
  if (form.length.value && form.length.axis == axis && !(start.is(0) && step == 1)) return std::nullopt;
  int64_t stepped = 0;
  if (__builtin_mul_overflow(factor, step, &stepped)) return std::nullopt;
  IndexForm result = form;
  result.offset = form.offset + start * factor;
  result.set_factor(axis, stepped);
  return result;
}

IndexForm without_single_axes(IndexForm form, const Shape& shape) {
  for (size_t axis = 0; axis < form.factors.size(); ++axis)
    if (from_last(shape, axis).is(1)) form.factors[axis] = 0;
  form.set_factor(0, form.factor(0));
  if (form.length.value && from_last(shape, form.length.axis).is(1)) form.length.axis = ListedLength::kNoAxis;
  return form;
}

std::optional<bool> is_never_negative(const IndexForm& form, const Shape& shape) {
  if (form.length.value) return std::nullopt;
  Dim least = form.offset, greatest = form.offset;
  for (size_t axis = 0; axis < form.factors.size(); ++axis) {
    const int64_t factor = form.factor(axis);
    if (factor == 0) continue;
    if (axis >= shape.size()) return std::nullopt;
    Dim& end = factor > 0 ? greatest : least;
    end = end + (from_last(shape, axis) - 1) * factor;
  }
  if (least.never_negative()) return true;
  if ((Dim(0) - greatest - 1).never_negative()) return false;
  return std::nullopt;
}

}  // namespace attn_opt
