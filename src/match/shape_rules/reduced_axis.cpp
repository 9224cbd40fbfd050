#include "src/match/shape_rules/reduced_axis.h"

#include <algorithm>

#include "src/match/node_forms.h"

namespace attn_opt {

std::optional<std::vector<size_t>> reduced_axes(const Node& node, size_t rank, Facts& facts) {
  std::vector<Dim> listed;
  if (const auto* attribute = node.ints_attribute("axes")) listed.assign(attribute->begin(), attribute->end());
  if (const Value* input = node.input(1)) {
    const IntegerData* data = facts.integers(*input);
    if (!data) return std::nullopt;
    listed.insert(listed.end(), data->values.begin(), data->values.end());
  }
  std::vector<size_t> axes;
  for (const Dim& one : listed) {
    const auto axis = one.is_constant() ? axis_in(one.value(), rank) : std::nullopt;
    if (!axis) return std::nullopt;
    axes.push_back(*axis);
  }
  std::ranges::sort(axes);
  return axes;
}

std::optional<size_t> reduced_axis(const Node& node, size_t rank, Facts& facts) {
  const auto axes = reduced_axes(node, rank, facts);
  return axes && axes->size() == 1 ? std::optional(axes->front()) : std::nullopt;
}

}  // namespace attn_opt
