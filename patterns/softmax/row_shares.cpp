#include "patterns/softmax/row_shares.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "attn_opt/canonical.h"
#include "patterns/inner_values.h"
#include "patterns/same_number.h"
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

std::optional<CutRange> RowNumbers::block_of(const Unknown& unknown, const WeighedScores& weighed) {
  const auto keys = std::ranges::find(weighed.scores.axes, RowReduction::kTaken) - weighed.scores.axes.begin();
  const bool is_sum = unknown.kind == Kind::kSum && std::abs(unknown.times - weighed.times) <= kSameNumber;
  if (!is_sum && unknown.kind != Kind::kExponential) return std::nullopt;
  const auto range = cut_range(*unknown.at.value, facts_);
  if (!range || range->axis != static_cast<size_t>(keys) || range->drops_axis || !range->first.is_constant())
    return std::nullopt;
  std::vector<int> axes = unknown.axes;
  if (!is_sum && range->count.is(1) && range->axis < axes.size()) axes[range->axis] = RowReduction::kTaken;
  if (axes != weighed.scores.axes) return std::nullopt;
  const LinearTerms source = linear_terms_of(before_float_casts(*range->source, facts_), weighed.times, facts_);
  return are_same_terms(source, unknowns_[weighed.sum].terms) ? range : std::nullopt;
}

std::optional<RowRatio> RowNumbers::sum_in_blocks(const WeighedScores& weighed) {
  std::vector<std::pair<int64_t, size_t>> blocks;
  for (size_t i = 0; i < unknowns_.size(); ++i)
    if (const auto block = block_of(unknowns_[i], weighed)) blocks.emplace_back(block->first.value(), i);
  if (blocks.empty()) return std::nullopt;
  std::ranges::sort(blocks);
  std::vector<Value*> parts;
  std::optional<RowRatio> sum = RowRatio::number(0);
  for (const auto& [first, index] : blocks) {
    parts.push_back(unknowns_[index].at.value);
    const double power = unknowns_[index].kind == Kind::kSum ? 1 : weighed.times;
    const auto own = RowRatio::unknown(index).power(power);
    sum = sum && own ? sum->plus(*own) : std::nullopt;
  }
  const auto keys =
      static_cast<size_t>(std::ranges::find(weighed.scores.axes, RowReduction::kTaken) - weighed.scores.axes.begin());
  const auto seen = [&](Value& value) -> Value& { return canonical(value, facts_); };
  const auto joined = joined_range(parts, keys, seen, facts_);
  const MaybeShape whole = facts_.shape(*weighed.scores.value);
  return joined && whole && joined->count == (*whole)[keys] ? sum : std::nullopt;
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
