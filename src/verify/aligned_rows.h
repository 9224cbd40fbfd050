// The tensors of a compared output, row by row as the scores lie.
#pragma once

#include <span>
#include <vector>

#include "src/verify/judge.h"

namespace attn_opt {

/// The tensors of an output row by row.
struct AlignedRows {
  std::vector<double> before, after, exact, moves;
  size_t width = 1;
  bool are_score_rows = false;  ///< row I is row I of the scores

  size_t count() const { return before.size() / width; }
  std::span<const double> before_row(size_t row) const { return std::span(before).subspan(row * width, width); }
  std::span<const double> after_row(size_t row) const { return std::span(after).subspan(row * width, width); }
  std::span<const double> exact_row(size_t row) const { return std::span(exact).subspan(row * width, width); }
  std::span<const double> moves_row(size_t row) const { return std::span(moves).subspan(row * width, width); }
};

AlignedRows aligned(const Compared& compared);

}  // namespace attn_opt
