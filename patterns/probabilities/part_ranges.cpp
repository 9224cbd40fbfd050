#include "patterns/probabilities/part_ranges.h"

#include <algorithm>

#include "src/match/cut_range.h"

namespace attn_opt {

std::vector<PartRange> parts_by(const Node& node, size_t axis, Facts& facts) {
  std::vector<PartRange> parts;
  for (Value* part : node.outputs) {
    const auto range = part ? taken_range(*part, facts) : std::nullopt;
    if (!range || range->axis != axis) return {};
    parts.push_back({part, range->first, range->count, range->drops_axis});
  }
  return parts;
}

std::vector<PartRange> in_order(std::vector<PartRange> parts, const Dim& count) {
  Dim next = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto from = parts.begin() + static_cast<std::ptrdiff_t>(i);
    const auto found = std::ranges::find(from, parts.end(), next, &PartRange::first);
    if (found == parts.end()) return {};
    std::iter_swap(from, found);
    next = next + parts[i].count;
  }
  return next == count && parts.size() > 1 ? parts : std::vector<PartRange>();
}

}  // namespace attn_opt
