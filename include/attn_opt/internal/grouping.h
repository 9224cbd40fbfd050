// Which factors of an AxisMap each axis of a value holds.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace attn_opt {

/// For each axis the factors that it holds, outermost first, as indices. All axes share two lists: maps are copied at each
/// step of a walk, and a list for each axis would cost as many allocations.
class Grouping {
 public:
  size_t rank() const { return ends_.size(); }
  /// Error: std::out_of_range, for an axis that is not there.
  std::span<const int> axis(size_t axis) const {
    const int end = ends_.at(axis), begin = axis == 0 ? 0 : ends_[axis - 1];
    return std::span(factors_).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  }
  /// All factors, outermost axis first.
  const std::vector<int>& factors() const { return factors_; }
  size_t unit_axes() const;
  Grouping without_unit_axes() const;
  /// The axes whose numbers ORDER lists.
  Grouping reordered(std::span<const size_t> order) const;

  void reserve(size_t axes, size_t factors);
  /// To the axis that end_axis() ends.
  void add_factor(int factor) { factors_.push_back(factor); }
  void end_axis() { ends_.push_back(static_cast<int>(factors_.size())); }
  void add_axis(std::span<const int> factors);
  void add_unit_axes(size_t count) { ends_.insert(ends_.begin(), count, 0); }
  /// FACTOR becomes two, the second of which is counted next: those behind it count one more.
  void split(int factor);
  /// The same factors in the same order on axes that end at ENDS.
  void regroup(std::vector<int> ends) { ends_ = std::move(ends); }
  bool operator==(const Grouping& other) const = default;

 private:
  std::vector<int> factors_, ends_;  // axis by axis; where in factors_ each axis ends
};

}  // namespace attn_opt
