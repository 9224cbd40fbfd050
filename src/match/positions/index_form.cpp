#include "src/match/positions/index_form.h"

#include <algorithm>
#include <cmath>

#include "attn_opt/tensor.h"

namespace attn_opt {
namespace {

using P = onnx::TensorProto;

constexpr double kLargestSize = 1 << 20;

struct Bounds {
  double least = 0, greatest = 0;
};

/// Between which TYPE holds every integer; nothing lies between those of other types.
Bounds held_integers(DataType type) {
  const auto both = [](int bits) { return Bounds{-std::ldexp(1, bits), std::ldexp(1, bits)}; };
  const int bits = 8 * static_cast<int>(element_size(type));
  switch (type) {
    case P::BFLOAT16: return both(8);
    case P::FLOAT16: return both(11);
    case P::FLOAT: return both(24);
    case P::DOUBLE: return both(53);
    case P::INT8:
    case P::INT16:
    case P::INT32:
    case P::INT64: return {-std::ldexp(1, bits - 1), std::ldexp(1, bits - 1) - 1};
    case P::UINT8:
    case P::UINT16:
    case P::UINT32:
    case P::UINT64: return {0, std::ldexp(1, bits) - 1};
    default: return {INFINITY, -INFINITY};
  }
}

/// FACTOR times a number from 0 to LARGEST more than what BOUNDS hold.
void widen(Bounds& bounds, double factor, double largest) { (factor > 0 ? bounds.greatest : bounds.least) += factor * largest; }

Bounds bounds_of(const IndexForm& form, const Shape& shape) {
  Bounds bounds;
  for (const Dim::Term& term : form.offset.terms()) {
    const auto factor = static_cast<double>(term.coefficient);
    if (term.factors.empty()) {
      bounds.least += factor;
      bounds.greatest += factor;
      continue;
    }
    const bool has_sign = std::ranges::any_of(term.factors, [](const AtomRef& atom) { return atom->may_be_negative; });
    const double largest = std::pow(kLargestSize, static_cast<double>(term.factors.size()));
    widen(bounds, factor, largest);
    if (has_sign) widen(bounds, -factor, largest);
  }
  for (size_t axis = 0; axis < form.factors.size(); ++axis) {
    const Dim size = axis < shape.size() ? from_last(shape, axis) : Dim(1);
    widen(bounds, static_cast<double>(form.factor(axis)),
          size.is_constant() ? static_cast<double>(size.value() - 1) : kLargestSize);
  }
  if (form.length.value) widen(bounds, static_cast<double>(form.length.times), kLargestSize);
  return bounds;
}

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

bool is_held_by(DataType type, const IndexForm& form, const Shape& shape) {
  const Bounds held = held_integers(type), needed = bounds_of(form, shape);
  return held.least <= needed.least && needed.greatest <= held.greatest;
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
