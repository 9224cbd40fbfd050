// Windows of a channel as rows of a matrix: one row a kernel position, one column an output position. Conv
// reads channels into such rows; ConvTranspose and Col2Im add rows onto channels.
#pragma once

#include <type_traits>

#include "src/exec/layout/strided.h"
#include "src/exec/spatial/window.h"

namespace attn_opt {

/// Calls run(i, offset, count) for what shows input under kernel position K: the COUNT output positions from
/// the I-th on show OFFSET and every w.strides.back()-th element of the channel behind it.
template <class Run>
void visit_row(const Window& w, const Dims& strides, const Dims& k, Run&& run) {
  const size_t last = w.rank() - 1;
  const int64_t corner = window_position(w, last, 0, k[last]);
  const Range shown = steps_inside(corner, w.strides[last], w.out[last], w.in[last]);
  if (shown.size() == 0) return;
  const Dims leading(w.out.begin(), w.out.end() - 1);
  Dims at(last, 0);
  int64_t row = 0;
  do {
    int64_t offset = corner + shown.first * w.strides[last];
    bool inside = true;
    for (size_t axis = 0; axis < last; ++axis) {
      const int64_t position = window_position(w, axis, at[axis], k[axis]);
      inside = inside && position >= 0 && position < w.in[axis];
      offset += position * strides[axis];
    }
    if (inside) run(row + shown.first, offset, shown.size());
    row += w.out[last];
  } while (next_index(at, leading));
}

/// Calls run(i, offset, count) for all CHANNELS, which stand one behind the other, and all kernel positions: elements I to
/// I + COUNT of the rows show OFFSET and every w.strides.back()-th element of the channels behind it.
template <class Run>
void visit_rows(const Window& w, int64_t channels, Run&& run) {
  const Dims strides = strides_of(w.in);
  int64_t row = 0, image = 0;
  for (int64_t c = 0; c < channels; ++c, image += element_count(w.in)) {
    Dims k(w.rank(), 0);
    do {
      visit_row(w, strides, k, [&](int64_t i, int64_t offset, int64_t count) { run(row + i, image + offset, count); });
      row += element_count(w.out);
    } while (next_index(k, w.kernel));
  }
}

/// ROWS, zero-filled before, of the CHANNELS at IMAGE.
template <class T>
void fill_columns(const Window& w, const T* image, int64_t channels, T* rows) {
  visit_rows(w, channels, [&, step = w.strides.back()](int64_t i, int64_t offset, int64_t count) {
    for (int64_t j = 0; j < count; ++j) rows[i + j] = image[offset + j * step];
  });
}

/// Adds ROWS onto CHANNELS of IMAGE; integers wrap around.
template <class T>
void add_columns(const Window& w, const T* rows, int64_t channels, T* image) {
  visit_rows(w, channels, [&, step = w.strides.back()](int64_t i, int64_t offset, int64_t count) {
    for (int64_t j = 0; j < count; ++j) {
      T& to = image[offset + j * step];
      if constexpr (std::is_integral_v<T>)
        to = static_cast<T>(static_cast<uint64_t>(to) + static_cast<uint64_t>(rows[i + j]));
      else
        to += rows[i + j];
    }
  });
}

}  // namespace attn_opt
