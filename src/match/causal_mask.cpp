#include "attn_opt/causal_mask.h"

#include <algorithm>
#include <cmath>

#include "src/match/position_reader.h"

namespace attn_opt {
namespace {

using Reason = tl::unexpected<std::string>;

/// The form that is not negative where key j lies beyond query i + OFFSET.
IndexForm beyond(const Dim& offset, const Shape& shape) {
  return without_single_axes({{1, -1}, Dim(-1) - offset}, shape);
}

/// The largest element that is not WANTED where condition BEYOND holds; nullopt unless all elements there, and no others,
/// are unwanted.
std::optional<double> largest_beyond(size_t beyond, double wanted, const PossibleValues& possible) {
  double largest = -INFINITY;
  for (const auto& [truths, value] : possible.cases) {
    const bool is_beyond = (truths >> beyond & 1) != 0;
    if (std::isnan(value) || (value == wanted) == is_beyond) return std::nullopt;
    if (is_beyond) largest = std::max(largest, value);
  }
  return largest;
}

/// Size of AXIS of the scores must be that of the mask where elements depend on it.
bool fits(const PositionTable& table, const Shape& mask, const Shape& scores) {
  for (const IndexForm& form : table.conditions)
    for (size_t axis = 0; axis < form.factors.size(); ++axis)
      if (form.factor(axis) != 0 && (axis > 1 || from_last(mask, axis) != from_last(scores, axis))) return false;
  return true;
}

}  // namespace

tl::expected<CausalMask, std::string> causal_mask(Value& mask, double wanted, const Dim& queries, const Dim& keys,
                                                  Facts& facts) {
  PositionReader reader(facts);
  const auto table = reader.read(mask);
  const Shape* shape = facts.shape(mask);
  if (!table || !shape) {
    const Value* obstacle = reader.obstacle();
    return Reason("hangs on '" + (obstacle ? obstacle : &mask)->name + "'");
  }
  const Shape scores{queries, keys};
  if (!fits(*table, *shape, scores)) return Reason("is " + to_string(*shape) + " for scores of " + to_string(scores));
  const PossibleValues possible = possible_values(*table, scores);
  if (possible.cases.empty()) return Reason("holds no numbers");
  if (std::all_of(possible.cases.begin(), possible.cases.end(), [&](const auto& c) { return c.value == wanted; }))
    return CausalMask{};
  for (size_t i = 0; i < possible.conditions.size(); ++i) {
    const Dim offset = Dim(-1) - possible.conditions[i].offset;
    if (possible.conditions[i].factors != beyond(offset, scores).factors) continue;
    if (const auto largest = largest_beyond(i, wanted, possible)) return CausalMask{offset, *largest};
  }
  return Reason("is no causal triangle");
}

}  // namespace attn_opt
