#include "patterns/softmax/row_shares.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "attn_opt/canonical.h"
#include "patterns/inner_values.h"
#include "patterns/softmax/row_numbers.h"
#include "src/match/cut_range.h"

namespace attn_opt {
namespace {

/// True if RATIO is 1 / the sum of the exponentials that it is multiplied with, or of all blocks of their keys.
bool is_inverse_of_sum(const WeighedScores& weighed, RowNumbers& rows) {
  const auto is_one = [&](const std::optional<RowRatio>& sum) {
    const auto whole = sum ? weighed.ratio.times(*sum) : std::nullopt;
    return whole && whole->is(1);
  };
  return is_one(RowRatio::unknown(weighed.sum)) || is_one(rows.sum_in_blocks(weighed));
}

}  // namespace

std::optional<RowRatio> RowNumbers::sum_in_blocks(const WeighedScores& weighed) {
  constexpr double kSameTimes = 1e-6;
  const RowReduction& scores = weighed.scores;
  const auto keys = std::ranges::find(scores.axes, RowReduction::kTaken) - scores.axes.begin();
  std::vector<std::pair<int64_t, size_t>> blocks;
  for (size_t i = 0; i < unknowns_.size(); ++i) {
    const Unknown& sum = unknowns_[i];
    const bool is_alike =
        sum.kind == Kind::kSum && sum.axes == scores.axes && std::abs(sum.times - weighed.times) <= kSameTimes;
    const auto range = is_alike ? cut_range(*sum.at.value, facts_) : std::nullopt;
    if (!range || &canonical(*range->source, facts_) != scores.value || std::ssize(scores.axes) <= keys ||
        range->axis != static_cast<size_t>(keys) || range->drops_axis || !range->first.is_constant())
      continue;
    blocks.emplace_back(range->first.value(), i);
  }
  std::ranges::sort(blocks);
  std::vector<Value*> parts;
  std::optional<RowRatio> sum = RowRatio::number(0);
  for (const auto& [first, index] : blocks) {
    parts.push_back(unknowns_[index].at.value);
    sum = sum ? sum->plus(RowRatio::unknown(index)) : std::nullopt;
  }
  const auto seen = [&](Value& value) -> Value& { return canonical(value, facts_); };
  const auto joined = parts.empty() ? std::nullopt : joined_range(parts, static_cast<size_t>(keys), seen, facts_);
  const MaybeShape whole = facts_.shape(*scores.value);
  return joined && whole && joined->count == (*whole)[static_cast<size_t>(keys)] ? sum : std::nullopt;
}

std::optional<SoftmaxSite> softmax_of_rows(Node& node, MatchContext& context) {
  Value& shares = *node.outputs[0];
  const MaybeShape shape = context.facts.shape(shares);
  for (size_t keys = 0; shape && keys < std::min<size_t>(2, shape->size()); ++keys) {
    RowNumbers rows(node, context);
    RowReduction placed = placed_in(shares, shape->size(), context.facts);
    placed.axes[shape->size() - 1 - keys] = RowReduction::kTaken;
    const auto weighed = rows.weights(placed);
    if (!weighed || weighed->scores.axes != placed.axes || !is_inverse_of_sum(*weighed, rows)) continue;
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
