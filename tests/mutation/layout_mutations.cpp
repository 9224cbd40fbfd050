// The layout of Q, K, V and Y read wrong: axes exchanged, factors of one axis in the wrong order, heads miscounted.
#include <optional>

#include "tests/mutation/mutation.h"

namespace attn_opt {
namespace {

using Changes = std::vector<Change<Sdpa>>;

AxisMap exchanged(const AxisMap& axes, size_t one, size_t other) {
  std::vector<int64_t> perm;
  for (size_t axis = 0; axis < axes.rank(); ++axis) perm.push_back(static_cast<int64_t>(axis));
  std::swap(perm[one], perm[other]);
  return axes.after_transpose(perm);
}

/// The factors of AXES from the outermost to the innermost: two maps that agree in this hold the same elements.
std::vector<int> in_order(const AxisMap& axes) {
  std::vector<int> factors;
  for (size_t axis = 0; axis < axes.rank(); ++axis)
    factors.insert(factors.end(), axes.axis(axis).begin(), axes.axis(axis).end());
  return factors;
}

Dim size_of(const AxisMap& axes, int factor) { return axes.factors()[static_cast<size_t>(factor)].size; }

/// AXES with the first two factors of AXIS in the other order.
std::optional<AxisMap> reversed_within(const AxisMap& axes, size_t axis) {
  if (axes.axis(axis).size() != 2) return std::nullopt;
  Shape joined, split;
  for (size_t i = 0; i < axes.rank(); ++i) {
    Dim extent = 1;
    for (int factor : axes.axis(i)) {
      if (i == axis) split.push_back(size_of(axes, factor));
      extent = extent * size_of(axes, factor);
    }
    if (i != axis) split.push_back(extent);
    joined.push_back(extent);
  }
  const auto apart = axes.regrouped(split);
  return apart ? exchanged(*apart, axis, axis + 1).regrouped(joined) : std::nullopt;
}

/// What a mutation does to one view's axes at each place; nothing where it does not apply.
using Variants = std::vector<AxisMap> (*)(const AxisMap&);

std::vector<AxisMap> with_axes_exchanged(const AxisMap& axes) {
  std::vector<AxisMap> variants;
  for (size_t one = 0; one < axes.rank(); ++one)
    for (size_t other = one + 1; other < axes.rank(); ++other)
      if (in_order(exchanged(axes, one, other)) != in_order(axes)) variants.push_back(exchanged(axes, one, other));
  return variants;
}

std::vector<AxisMap> with_factors_reversed(const AxisMap& axes) {
  std::vector<AxisMap> variants;
  for (size_t axis = 0; axis < axes.rank(); ++axis)
    if (auto reversed = reversed_within(axes, axis)) variants.push_back(*std::move(reversed));
  return variants;
}

/// Each variant of each view, alone: the other views of the operand would hide it.
template <class View>
Changes alone(std::vector<View> Sdpa::* views_of, const std::vector<View>& views, Variants variants) {
  Changes changes;
  for (const View& view : views)
    for (const AxisMap& axes : variants(view.axes))
      changes.push_back([=](Sdpa& sdpa) {
        View changed = view;
        changed.axes = axes;
        sdpa.*views_of = {changed};
      });
  return changes;
}

Changes of_operand(Operand Sdpa::* operand, const Sdpa& sdpa, Variants variants) {
  Changes changes;
  for (const OperandView& view : (sdpa.*operand).views)
    for (const AxisMap& axes : variants(view.axes))
      changes.push_back([=](Sdpa& changed) {
        OperandView other = view;
        other.axes = axes;
        (changed.*operand).views = {other};
      });
  return changes;
}

std::vector<DescriptionMutation> of_every_layout(const std::string& change, Variants variants) {
  const std::pair<const char*, Operand Sdpa::*> operands[] = {{"Q", &Sdpa::q}, {"K", &Sdpa::k}, {"V", &Sdpa::v}};
  std::vector<DescriptionMutation> all;
  for (const auto& [name, operand] : operands)
    all.push_back({"layout", change + " of " + name,
                   [part = operand, variants](const Sdpa& sdpa, Facts&) { return of_operand(part, sdpa, variants); }});
  all.push_back({"layout", change + " of Y",
                 [variants](const Sdpa& sdpa, Facts&) { return alone(&Sdpa::outputs, sdpa.outputs, variants); }});
  return all;
}

/// The map of (B, rows, heads * features) with HEADS heads; nullopt if AXES is no such or HEADS does not divide it.
std::optional<AxisMap> with_heads(const AxisMap& axes, const Dim& heads) {
  if (!axes.is_three_dimensional() || axes.has_repeats()) return std::nullopt;
  const Dim width = axes.size(Role::kHead) * axes.size(Role::kFeature);
  const auto features = exact_quotient(width, heads);
  if (!features) return std::nullopt;
  const Dim batch = axes.size(Role::kBatch), rows = axes.size(Role::kRow);
  return AxisMap::of({batch, rows, heads, *features}, {Role::kBatch, Role::kRow, Role::kHead, Role::kFeature})
      .regrouped({batch, rows, width});
}

/// Leaves the views that can be read with heads FACTOR times as many, read so; false if there is none.
template <class View>
bool recount(std::vector<View>& views, int64_t numerator, int64_t denominator) {
  std::vector<View> recounted;
  for (const View& view : views) {
    const auto heads = exact_quotient(view.axes.size(Role::kHead) * Dim(numerator), Dim(denominator));
    const auto axes = heads ? with_heads(view.axes, *heads) : std::nullopt;
    if (!axes) continue;
    recounted.push_back(view);
    recounted.back().axes = *axes;
  }
  views = recounted;
  return !views.empty();
}

DescriptionMutation heads_times(const std::string& change, int64_t numerator, int64_t denominator, bool of_query,
                                bool of_key_value) {
  return {"heads", change, [=](const Sdpa& sdpa, Facts&) {
            Sdpa changed = sdpa;
            bool applies = true;
            if (of_query) {
              applies = recount(changed.q.views, numerator, denominator) && recount(changed.outputs, numerator, denominator);
              if (auto heads = exact_quotient(sdpa.query_heads * Dim(numerator), Dim(denominator)))
                changed.query_heads = *heads;
            }
            if (of_key_value)
              applies = applies && recount(changed.k.views, numerator, denominator) &&
                        recount(changed.v.views, numerator, denominator);
            return once_if<Sdpa>(applies, [changed](Sdpa& target) { target = changed; });
          }};
}

/// Heads that were repeated as a whole (0 1 0 1) read as repeated each in turn (0 0 1 1).
std::optional<AxisMap> read_as_interleaved(const OperandView& view) {
  const AxisMap& axes = view.axes;
  if (!axes.has_repeats() || axes.repeats_interleave() || axes.rank() != 4) return std::nullopt;
  const Dim batch = axes.size(Role::kBatch), heads = axes.size(Role::kHead), repeats = axes.size(Role::kHead, true);
  const Dim rows = axes.size(Role::kRow), features = axes.size(Role::kFeature);
  const auto repeated =
      AxisMap::of({batch, heads, repeats, rows, features}, {Role::kBatch, Role::kHead, Role::kHead, Role::kRow, Role::kFeature})
          .before_expand({batch, heads, 1, rows, features}, {batch, heads, repeats, rows, features});
  return repeated ? repeated->regrouped({batch, heads, rows, features}) : std::nullopt;
}

bool interleave(Operand& operand) {
  bool found = false;
  for (OperandView& view : operand.views)
    if (auto axes = read_as_interleaved(view)) {
      view.axes = *axes;
      found = true;
    }
  return found;
}

}  // namespace

std::vector<DescriptionMutation> layout_mutations() {
  std::vector<DescriptionMutation> all = of_every_layout("two axes exchanged", with_axes_exchanged);
  for (auto& mutation : of_every_layout("factors of an axis reversed", with_factors_reversed))
    all.push_back(std::move(mutation));
  all.push_back(heads_times("halved", 1, 2, true, true));
  all.push_back(heads_times("doubled", 2, 1, true, true));
  all.push_back(heads_times("of K and V halved", 1, 2, false, true));
  all.push_back({"heads", "tiled ones read as interleaved", [](const Sdpa& sdpa, Facts&) {
                   Sdpa changed = sdpa;
                   const bool of_keys = interleave(changed.k), of_values = interleave(changed.v);
                   return once_if<Sdpa>(of_keys && of_values, [changed](Sdpa& target) { target = changed; });
                 }});
  all.push_back({"layout", "two axes exchanged of the probabilities", [](const Sdpa& sdpa, Facts&) {
                   Changes changes;
                   if (!sdpa.probabilities) return changes;
                   for (const AxisMap& axes : with_axes_exchanged(sdpa.probabilities->axes))
                     changes.push_back([axes](Sdpa& changed) { changed.probabilities->axes = axes; });
                   return changes;
                 }});
  return all;
}

}  // namespace attn_opt
