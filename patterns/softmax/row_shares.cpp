#include "patterns/softmax/row_shares.h"

#include <algorithm>

#include "patterns/inner_values.h"
#include "patterns/softmax/row_numbers.h"

namespace attn_opt {

std::optional<SoftmaxSite> softmax_of_rows(Node& node, MatchContext& context) {
  Value& shares = *node.outputs[0];
  const MaybeShape shape = context.facts.shape(shares);
  for (size_t keys = 0; shape && keys < std::min<size_t>(2, shape->size()); ++keys) {
    RowNumbers rows(node, context);
    RowReduction placed = placed_in(shares, shape->size(), context.facts);
    placed.axes[shape->size() - 1 - keys] = RowReduction::kTaken;
    const auto weighed = rows.weights(placed);
    const auto whole = weighed ? weighed->ratio.times(RowRatio::unknown(weighed->sum)) : std::nullopt;
    if (!whole || !whole->is(1) || weighed->scores.axes != placed.axes) continue;
    Value* scores = InnerValues(node, context).scaled(weighed->scores.value, weighed->times);
    if (const MaybeShape own = context.facts.shape(*scores); !own || *own != *shape) continue;
    SoftmaxSite site{scores, &shares, nullptr, keys, std::nullopt};
    if (!rows.stays_in_range()) site.exponent_offset = 0;
    site.exponent_power = rows.exponent_power();
    return site;
  }
  return std::nullopt;
}

}  // namespace attn_opt
