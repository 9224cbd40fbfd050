#include "attn_opt/internal/grouping.h"

#include <algorithm>

namespace attn_opt {

size_t Grouping::unit_axes() const {
  size_t count = 0;
  for (size_t i = 0; i < rank(); ++i) count += axis(i).empty();
  return count;
}

Grouping Grouping::without_unit_axes() const {
  Grouping kept;
  kept.factors_ = factors_;
  kept.ends_.reserve(rank());
  for (size_t i = 0; i < rank(); ++i)
    if (!axis(i).empty()) kept.ends_.push_back(ends_[i]);
  return kept;
}

Grouping Grouping::reordered(std::span<const size_t> order) const {
  Grouping reordered;
  reordered.reserve(order.size(), factors_.size());
  for (const size_t number : order) reordered.add_axis(axis(number));
  return reordered;
}

void Grouping::reserve(size_t axes, size_t factors) {
  ends_.reserve(axes);
  factors_.reserve(factors);
}

void Grouping::add_axis(std::span<const int> factors) {
  factors_.insert(factors_.end(), factors.begin(), factors.end());
  end_axis();
}

void Grouping::split(int factor) {
  Grouping split;
  split.reserve(rank(), factors_.size() + 1);
  for (size_t i = 0; i < rank(); ++i) {
    for (const int held : axis(i)) {
      split.add_factor(held > factor ? held + 1 : held);
      if (held == factor) split.add_factor(factor + 1);
    }
    split.end_axis();
  }
  *this = std::move(split);
}

}  // namespace attn_opt
