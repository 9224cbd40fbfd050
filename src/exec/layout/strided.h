// Walks over tensors by strides: broadcasting, transposing, slicing and reducing are loops of this one shape.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "attn_opt/tensor.h"

namespace attn_opt {

/// Elements between neighbours along each axis of a contiguous tensor.
inline Dims strides_of(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

/// A loop over DIMS in row-major order that keeps K offsets, each with its own strides (0: broadcast).
template <size_t K>
class StridedLoop {
 public:
  StridedLoop(const Dims& dims, const std::array<Dims, K>& strides) {
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      if (dims[axis] == 1) continue;
      append(dims[axis], strides, axis);
    }
    if (dims_.empty()) append(1, {}, 0);
  }

  /// Calls row(offsets, count, steps) for each innermost run of COUNT elements.
  template <class Row>
  void rows(Row&& row) const {
    if (element_count(dims_) == 0) return;
    const size_t last = dims_.size() - 1;
    std::array<int64_t, K> offsets{};
    Dims index(dims_.size(), 0);
    for (;;) {
      row(offsets, dims_[last], steps_[last]);
      size_t axis = last;
      for (;;) {
        if (axis == 0) return;
        --axis;
        for (size_t k = 0; k < K; ++k) offsets[k] += steps_[axis][k];
        if (++index[axis] < dims_[axis]) break;
        for (size_t k = 0; k < K; ++k) offsets[k] -= steps_[axis][k] * dims_[axis];
        index[axis] = 0;
      }
    }
  }

  /// Calls each(offsets) for every element.
  template <class Each>
  void elements(Each&& each) const {
    rows([&](std::array<int64_t, K> offsets, int64_t count, const std::array<int64_t, K>& steps) {
      for (int64_t i = 0; i < count; ++i) {
        each(offsets);
        for (size_t k = 0; k < K; ++k) offsets[k] += steps[k];
      }
    });
  }

 private:
  /// Adds an axis, merged into the one before where all offsets run on through both.
  void append(int64_t dim, const std::array<Dims, K>& strides, size_t axis) {
    std::array<int64_t, K> step{};
    for (size_t k = 0; k < K; ++k) step[k] = strides[k].empty() ? 0 : strides[k][axis];
    bool merges = !dims_.empty();
    for (size_t k = 0; merges && k < K; ++k) merges = steps_.back()[k] == step[k] * dim;
    if (merges) {
      dims_.back() *= dim;
      steps_.back() = step;
    } else {
      dims_.push_back(dim);
      steps_.push_back(step);
    }
  }

  Dims dims_;
  std::vector<std::array<int64_t, K>> steps_;
};

}  // namespace attn_opt
