// Shapes, and shapes that may not be known.
//
// A model of a stranger may leave any rank open, and have any rank. Neither may be met unprepared: a MaybeShape is read
// only after it has a name to test (`*facts.shape(value)` does not compile), and an axis that a shape lacks, or a shape
// that is not there, is a Defect, an exception which ends the site or the rule and nothing else.
//
//   if (const MaybeShape shape = facts.shape(*value)) use(*shape);
//   const MaybeShape shape = facts.shape(*value);
//   if (!shape || shape->size() != 3) return missed(...);
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "attn_opt/dim.h"

namespace attn_opt {

/// A check that attn-opt itself forgot. Whoever runs code for one site or one node catches it there.
class Defect : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// A list of Dims whose elements are read with a check. Error: Defect, for one that is not there.
class DimList : public std::vector<Dim> {
 public:
  using std::vector<Dim>::vector;
  DimList() = default;
  DimList(std::vector<Dim> dims) : std::vector<Dim>(std::move(dims)) {}  // NOLINT: the same with checks

  const Dim& operator[](size_t i) const { return begin()[static_cast<std::ptrdiff_t>(checked(i))]; }
  Dim& operator[](size_t i) { return begin()[static_cast<std::ptrdiff_t>(checked(i))]; }
  const Dim& front() const { return (*this)[0]; }
  Dim& front() { return (*this)[0]; }
  const Dim& back() const { return (*this)[size() - 1]; }
  Dim& back() { return (*this)[size() - 1]; }

 private:
  size_t checked(size_t i) const {
    if (i >= size()) lacks(i);
    return i;
  }
  [[noreturn]] void lacks(size_t i) const;
};

/// Sizes of the axes, outermost first.
using Shape = DimList;
/// The size of AXIS, counted from the last; 1 where SHAPE has no such axis, as in broadcasting.
Dim from_last(const Shape& shape, size_t axis);
/// "(batch, 8, past + seq, 64)".
std::string to_string(const Shape& shape);

/// A Shape, or none where the rank is not known. Refers to the Shape it was made of.
class MaybeShape {
 public:
  MaybeShape() = default;
  MaybeShape(std::nullptr_t) {}                       // NOLINT: none
  MaybeShape(const Shape& shape) : shape_(&shape) {}  // NOLINT: known
  MaybeShape(const Shape&&) = delete;

  explicit operator bool() const { return shape_ != nullptr; }
  /// True if it is known and has RANK axes.
  bool has_rank(size_t rank) const { return shape_ && shape_->size() == rank; }
  /// The shape. Error: Defect, if it is not known. For where what was recognised before says that it is.
  const Shape& known() const {
    if (!shape_) lacks();
    return *shape_;
  }

  const Shape& operator*() const& { return known(); }
  const Shape* operator->() const& { return &known(); }
  const Shape& operator*() const&& = delete;  // give it a name and test it
  const Shape* operator->() const&& = delete;

 private:
  [[noreturn]] static void lacks();

  const Shape* shape_ = nullptr;
};

}  // namespace attn_opt
