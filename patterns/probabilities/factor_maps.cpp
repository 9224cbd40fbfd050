#include "patterns/probabilities/factor_maps.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "patterns/inner_values.h"
#include "patterns/operands/operand_walk.h"

namespace attn_opt {
namespace {

using Factors = std::vector<int>;

std::vector<int64_t> in_order(size_t rank) {
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return axes;
}

/// ORDER, or that of RANK axes as they lie where it is empty, without axes that are not there.
std::vector<int64_t> own_order(std::vector<int64_t> order, size_t rank) {
  std::erase(order, kNoAxis);
  return order.empty() ? in_order(rank) : order;
}

bool leads_factors(Role role) { return role == Role::kBatch || role == Role::kHead; }

/// The map of a value of shape OWN over factors of LEADING; it is the same for those that it has no axis for, or one of size 1,
/// of which it may have more.
std::optional<AxisMap> map_over(const Shape& own, const std::vector<Role>& roles, const std::vector<int64_t>& order,
                                const Shape& leading) {
  Shape ordered, before, whole;
  std::vector<Role> placed;
  size_t next = 0;
  const std::vector<int64_t> axes = own_order(order, own.size());
  auto unshared = std::ranges::count_if(roles, leads_factors) - std::ssize(leading);
  for (const int64_t axis : axes) {
    const Dim& size = own[static_cast<size_t>(axis)];
    const Role role = roles[static_cast<size_t>(axis)];
    const bool leads = leads_factors(role), is_shared = leads && !(size.is(1) && unshared-- > 0);
    if (is_shared && next == leading.size()) return std::nullopt;
    const Dim& shared = is_shared ? leading[next++] : size;
    whole.push_back(shared);
    before.push_back(size.is(1) ? size : shared);
    placed.push_back(leads ? Role::kBatch : role);
  }
  ordered = before;
  for (; next < leading.size(); ++next) {
    whole.push_back(leading[next]);
    before.emplace_back(1);
    placed.push_back(Role::kBatch);
  }
  auto map = AxisMap::of(whole, placed).before_expand(before, whole);
  if (map) map = map->regrouped(ordered);
  return map ? std::optional(map->before_transpose(axes)) : std::nullopt;
}

/// The sizes of the leading axes of SIDE, in their order.
Shape leading_sizes(const ProductSide& side, const Shape& shape) {
  Shape sizes;
  for (const int64_t axis : own_order(side.order, shape.size()))
    if (leads_factors(side.roles[static_cast<size_t>(axis)])) sizes.push_back(shape[static_cast<size_t>(axis)]);
  return sizes;
}

/// The roles of the axes of probabilities of LAYOUT, where the keys are the features.
std::vector<Role> probability_roles(const ScoreLayout& layout, size_t rank) {
  const std::vector<int64_t> order = layout.order.empty() ? in_order(rank) : layout.order;
  std::vector<Role> roles(rank, Role::kBatch);
  const auto set = [&](int64_t axis, Role role) {
    if (axis != kNoAxis) roles[static_cast<size_t>(axis)] = role;
  };
  set(order[order.size() - 2], Role::kRow);
  set(order.back(), Role::kFeature);
  return roles;
}

/// SIZES of a Reshape; nullopt if more than one is no number.
std::optional<std::vector<int64_t>> reshape_sizes(const Shape& sizes) {
  std::vector<int64_t> numbers;
  for (const Dim& size : sizes) numbers.push_back(size.is_constant() ? size.value() : -1);
  return std::ranges::count(numbers, -1) <= 1 ? std::optional(numbers) : std::nullopt;
}

/// A factor and where it is to lie: what each axis of a side holds of it.
class Placing {
 public:
  /// OWN and SIDE have the factors of ROWS, and of the rows, and the leading ones split alike.
  Placing(Value& value, const AxisMap& own, Role rows, const AxisMap& side) : value_(&value), own_(own) {
    std::vector<int> place(side.factors().size(), -1);
    for (const auto& [from, to] : {std::pair{Role::kBatch, Role::kBatch}, std::pair{rows, Role::kRow}}) {
      const Factors of_own = own.all_of_role(from), of_side = side.all_of_role(to);
      for (size_t i = 0; i < of_own.size(); ++i) place[static_cast<size_t>(of_side[i])] = of_own[i];
    }
    for (size_t axis = 0; axis < own.rank(); ++axis) have_.emplace_back(own.axis(axis).begin(), own.axis(axis).end());
    for (size_t axis = 0; axis < side.rank(); ++axis) {
      Factors kept, all;
      for (const int factor : side.axis(axis)) {
        const int at = place[static_cast<size_t>(factor)];
        all.push_back(at);
        if (at >= 0 && !own.factors()[static_cast<size_t>(at)].repeated) kept.push_back(at);
      }
      wanted_.push_back(std::move(kept));
      whole_.push_back(std::move(all));
    }
  }

  /// False if it has factors that the side has not.
  bool fits() const { return flat(have_).size() == flat(wanted_).size(); }

  /// By axes that change places, or come or go where they have the size 1; null if that does not do.
  Value* by_axes(InnerValues& inner) const {
    for (size_t axis = 0; axis < wanted_.size(); ++axis)
      if (!wanted_[axis].empty() && wanted_[axis] != whole_[axis]) return nullptr;
    std::vector<Factors> have = have_;
    std::vector<int64_t> dropped;
    for (size_t axis = 0; axis < have_.size() && have_.size() - dropped.size() > wanted_.size(); ++axis)
      if (have_[axis].empty()) dropped.push_back(static_cast<int64_t>(axis));
    for (size_t i = dropped.size(); i-- > 0;) have.erase(have.begin() + static_cast<std::ptrdiff_t>(dropped[i]));
    if (have.size() > wanted_.size()) return nullptr;
    have.insert(have.begin(), wanted_.size() - have.size(), Factors());
    const std::vector<int64_t> perm = order_from(have);
    if (std::ranges::find(perm, -1) != perm.end()) return nullptr;
    Value* value = dropped.empty() ? value_ : inner.build().along("Squeeze", *value_, dropped);
    return perm == in_order(perm.size()) ? value : inner.transposed(inner.raised(value, perm.size()), perm);
  }

  /// By axes of one factor each, which MAY_COPY for the factors that an axis of the side holds beside its own; null if sizes
  /// for that are not known.
  Value* by_factors(InnerValues& inner, bool may_copy) const {
    const Factors own = flat(have_), wanted = flat(wanted_);
    Shape split, units, copies, merged;
    for (const int factor : own) split.push_back(size_of(factor));
    for (size_t axis = 0; axis < wanted_.size(); ++axis) {
      Dim size = 1;
      if (!wanted_[axis].empty())
        for (const int factor : whole_[axis]) {
          const bool is_own = std::ranges::find(wanted_[axis], factor) != wanted_[axis].end();
          if (!is_own && (!may_copy || factor < 0 || !size_of(factor).is_constant())) return nullptr;
          units.push_back(is_own ? size_of(factor) : Dim(1));
          copies.push_back(is_own ? Dim(1) : size_of(factor));
          size = size * size_of(factor);
        }
      merged.push_back(size);
    }
    const auto to_split = reshape_sizes(split), to_units = reshape_sizes(units), to_merged = reshape_sizes(merged);
    if (!to_split || !to_units || !to_merged) return nullptr;
    std::vector<int64_t> perm;
    for (const int factor : wanted) perm.push_back(std::ranges::find(own, factor) - own.begin());
    Value* value = inner.reshaped(value_, *to_split);
    if (perm != in_order(perm.size())) value = inner.transposed(value, perm);
    if (units.size() != wanted.size())
      value = inner.build().node("Expand", {inner.reshaped(value, *to_units), inner.build().ints(*reshape_sizes(copies))});
    return inner.reshaped(value, *to_merged);
  }

 private:
  const Dim& size_of(int factor) const { return own_.factors()[static_cast<size_t>(factor)].size; }

  static Factors flat(const std::vector<Factors>& axes) {
    Factors all;
    for (const Factors& axis : axes) all.insert(all.end(), axis.begin(), axis.end());
    return all;
  }

  /// For each axis of the side the one of HAVE that is to stand there; -1 if there is none.
  std::vector<int64_t> order_from(const std::vector<Factors>& have) const {
    std::vector<int64_t> perm(wanted_.size(), -1);
    std::vector<bool> taken(have.size(), false);
    const auto take = [&](size_t axis, size_t from) {
      perm[axis] = static_cast<int64_t>(from);
      taken[from] = true;
    };
    // Axes of size 1 stay where they are if they can.
    for (size_t axis = 0; axis < perm.size(); ++axis)
      if (have[axis] == wanted_[axis]) take(axis, axis);
    for (size_t axis = 0; axis < perm.size(); ++axis)
      for (size_t from = 0; from < have.size() && perm[axis] < 0; ++from)
        if (!taken[from] && have[from] == wanted_[axis]) take(axis, from);
    return perm;
  }

  Value* value_;
  const AxisMap& own_;
  std::vector<Factors> have_;    ///< on each of its own axes
  std::vector<Factors> wanted_;  ///< on each axis of the side
  std::vector<Factors> whole_;   ///< what the side holds there; -1: no factor of its
};

}  // namespace

std::optional<FactorMaps> factor_maps(Value& probabilities, const ValueProduct& product, Facts& facts) {
  const MaybeShape own = facts.shape(probabilities), values = facts.shape(*product.value.value),
                   output = facts.shape(*product.output.value);
  if (!own || !values || !output || own->size() < 2 || output->size() != product.output.roles.size()) return std::nullopt;
  const Shape leading = leading_sizes(product.output, *output);
  const ScoreLayout& layout = product.probabilities;
  auto of_own = map_over(*own, probability_roles(layout, own->size()), layout.order, leading);
  auto of_values = map_over(*values, product.value.roles, product.value.order, leading);
  auto of_output = map_over(*output, product.output.roles, product.output.order, leading);
  if (!of_own || !of_values || !of_output) return std::nullopt;
  return FactorMaps{{&probabilities, *std::move(of_own)},
                    {product.value.value, *std::move(of_values)},
                    {product.output.value, *std::move(of_output)}};
}

Broadcast broadcast_of(Value& factor, const FactorSide& to, MatchContext& context) {
  const MaybeShape own = context.facts.shape(factor), whole = context.facts.shape(*to.value);
  auto axes = own && whole ? to.axes.before_expand(*own, *whole) : std::nullopt;
  Broadcast found;
  if (!axes) return found;
  for (const OperandView& view : walk_movement({&factor, *std::move(axes)}, context).views)
    found.views.push_back({view.value, view.axes});
  return found;
}

bool varies(const Broadcast& factor, Role role) { return !factor.views.empty() && !factor.views.back().axes.size(role).is(1); }

Value* placed_beside(const Broadcast& factor, Role rows, const FactorSide& side, bool may_copy, Node& reader,
                     MatchContext& context) {
  InnerValues inner(reader, context);
  for (const bool keeps_axes : {true, false})
    for (const FactorSide& view : factor.views) {
      AxisMap own = view.axes, other = side.axes;
      const bool is_split =
          AxisMap::split_alike(own, Role::kBatch, other, Role::kBatch) && AxisMap::split_alike(own, rows, other, Role::kRow);
      if (!is_split) continue;
      const Placing placing(*view.value, own, rows, other);
      if (!placing.fits()) continue;
      if (Value* placed = keeps_axes ? placing.by_axes(inner) : placing.by_factors(inner, may_copy)) return placed;
    }
  return nullptr;
}

}  // namespace attn_opt
