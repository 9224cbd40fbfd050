#include "src/match/shape_rules/reduced_axis.h"

#include "src/match/node_forms.h"

namespace attn_opt {

std::optional<size_t> reduced_axis(const Node& node, size_t rank, Facts& facts) {
  std::vector<Dim> axes;
  if (const auto* attribute = node.ints_attribute("axes")) axes.assign(attribute->begin(), attribute->end());
  if (const Value* listed = node.input(1)) {
    const IntegerData* data = facts.integers(*listed);
    if (!data) return std::nullopt;
    axes.insert(axes.end(), data->values.begin(), data->values.end());
  }
  return axes.size() == 1 && axes[0].is_constant() ? axis_in(axes[0].value(), rank) : std::nullopt;
}

}  // namespace attn_opt
