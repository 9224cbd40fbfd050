// Operators that rearrange elements: Reshape, Transpose, Expand, Concat, ...
#include <algorithm>
#include <functional>

#include "src/match/node_forms.h"
#include "src/match/sizes/sole_atom.h"

namespace attn_opt {
namespace {

/// Takes out of both what FROM and OTHERS have in common, by ARE_EQUAL.
template <class AreEqual>
void cancel(Shape& from, Shape& others, const AreEqual& are_equal) {
  for (auto other = others.begin(); other != others.end();) {
    const auto same = std::ranges::find_if(from, [&](const Dim& size) { return are_equal(size, *other); });
    if (same == from.end() || other->is(1)) {
      ++other;
      continue;
    }
    from.erase(same);
    other = others.erase(other);
  }
}

/// The entry of a Reshape's target that is -1: elements left over by the others. Equal factors cancel before
/// anything is multiplied out, then those that are taken for equal.
Dim left_over(Shape from, Shape others, const RuleContext& context) {
  cancel(from, others, std::equal_to<>());
  cancel(from, others, [&context](const Dim& one, const Dim& other) { return context.is_assumed_equal(one, other); });
  return floor_quotient(product(from), product(others));
}

/// What is reshaped keeps its elements: where FROM is no multiple of the sizes beside a -1, there is no run. What nodes demand
/// is kept where nothing may be assumed alone.
void require_as_many(const Shape& from, const Shape& to, const RuleContext& context) {
  if (context.store().may_assume()) return;
  Shape given = from, made = to;
  cancel(given, made, std::equal_to<>());
  context.require_equal(product(given), product(made));
}

void reshape(RuleContext& context) {
  const MaybeShape from = context.shape(0);
  const IntegerData* target = context.elements(1);
  if (!target) {
    const MaybeShape target_shape = context.shape(1);
    const bool rank_known = target_shape && target_shape->size() == 1 && (*target_shape)[0].is_constant();
    if (rank_known && (*target_shape)[0].value() <= kMaxIntegers) {
      context.set_shape(0, context.fresh_shape(0, static_cast<size_t>((*target_shape)[0].value())));
    }
    return;
  }
  const bool copies_zero = context.node().int_attribute("allowzero", 0) == 0;
  Shape to;
  std::optional<size_t> open;
  for (const Dim& entry : target->values) {
    const size_t axis = to.size();
    if (entry.is(0) && copies_zero) {
      to.push_back(from && axis < from->size() ? (*from)[axis] : context.fresh(0, axis));
    } else if (entry.is(-1) && !open) {
      open = axis;
      to.push_back(context.fresh(0, axis));
    } else {
      to.push_back(entry.may_be_size() && entry.from_sizes() ? entry : context.fresh(0, axis));
    }
  }
  if (open && from) {
    Shape others = to;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(*open));
    to[*open] = left_over(*from, std::move(others), context);
  }
  if (from) require_as_many(*from, to, context);
  context.set_shape(0, std::move(to));
}

void flatten(RuleContext& context) {
  const MaybeShape shape = context.shape(0);
  if (!shape) return context.set_shape(0, context.fresh_shape(0, 2));
  int64_t axis = context.node().int_attribute("axis", 1);
  const int64_t rank = static_cast<int64_t>(shape->size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank) return;
  const std::span<const Dim> dims(*shape);
  context.set_shape(0, {product(dims.first(static_cast<size_t>(axis))), product(dims.subspan(static_cast<size_t>(axis)))});
}

void transpose(RuleContext& context) {
  const MaybeShape shape = context.shape(0);
  if (!shape) return;
  Shape result(shape->rbegin(), shape->rend());
  if (const auto* perm = context.node().ints_attribute("perm")) {
    if (static_cast<size_t>(perm->size()) != shape->size()) return;
    for (int i = 0; i < perm->size(); ++i) {
      const std::optional<size_t> axis = axis_in((*perm)[i], shape->size());
      if (!axis) return;
      result[static_cast<size_t>(i)] = (*shape)[*axis];
    }
  }
  context.set_shape(0, std::move(result));
}

void unsqueeze(RuleContext& context) {
  const MaybeShape shape = context.shape(0);
  const IntegerList list = integer_list(context, "axes", 1);
  if (!shape || !list.values) return;
  const std::optional<std::vector<size_t>> axes = axes_of(context, shape->size() + list.values->size(), {});
  if (!axes) return;
  Shape result = *shape;
  for (const size_t axis : *axes) result.insert(result.begin() + static_cast<std::ptrdiff_t>(axis), Dim(1));
  context.set_shape(0, std::move(result));
}

void squeeze(RuleContext& context) {
  const MaybeShape shape = context.shape(0);
  if (!shape) return;
  std::vector<size_t> ones;
  bool certain = true;
  for (size_t axis = 0; axis < shape->size(); ++axis) {
    if ((*shape)[axis].is(1)) ones.push_back(axis);
    certain = certain && (*shape)[axis].is_constant();
  }
  if (!certain && !integer_list(context, "axes", 1).given) return;
  const std::optional<std::vector<size_t>> axes = axes_of(context, shape->size(), ones);
  if (!axes) return;
  Shape result;
  for (size_t axis = 0; axis < shape->size(); ++axis) {
    if (!std::binary_search(axes->begin(), axes->end(), axis)) result.push_back((*shape)[axis]);
  }
  context.set_shape(0, std::move(result));
}

void expand(RuleContext& context) {
  const MaybeShape shape = context.shape(0);
  const IntegerData* target = context.elements(1);
  if (!target) {
    const MaybeShape count = context.shape(1);
    if (!shape || !count || count->size() != 1 || !(*count)[0].is_constant()) return;
    if ((*count)[0].value() > kMaxIntegers) return;
    return context.set_shape(0, context.fresh_shape(0, std::max(shape->size(), static_cast<size_t>((*count)[0].value()))));
  }
  if (!shape) return;
  Shape result = *shape;
  if (target->values.size() > result.size()) result.insert(result.begin(), target->values.size() - result.size(), Dim(1));
  const size_t offset = result.size() - target->values.size();
  for (size_t i = 0; i < target->values.size(); ++i) {
    const Dim& entry = target->values[i];
    Dim& dim = result[offset + i];
    const bool wider = dim.is_constant() && !dim.is(1);
    if (wider) continue;
    dim = entry.may_be_size() && entry.from_sizes() ? context.broadcast(dim, entry) : context.fresh(0, offset + i);
  }
  context.set_shape(0, std::move(result));
}

void tile(RuleContext& context) {
  const MaybeShape shape = context.shape(0);
  if (!shape) return;
  const IntegerData* repeats = context.elements(1);
  if (!repeats || repeats->values.size() != shape->size()) return context.set_shape(0, context.fresh_shape(0, shape->size()));
  Shape result;
  for (size_t axis = 0; axis < shape->size(); ++axis) result.push_back((*shape)[axis] * repeats->values[axis]);
  context.set_shape(0, std::move(result));
}

/// Of the sizes that a legal Concat has equal, the best known.
const Dim& better_known(const Dim& a, const Dim& b) {
  if (a.is_constant() || b.is_constant()) return a.is_constant() ? a : b;
  const auto unknowns = [](const Dim& dim) {
    const auto atoms = dim.atoms();
    return std::count_if(atoms.begin(), atoms.end(), [](const AtomRef& atom) { return atom->unknown; });
  };
  return unknowns(b) < unknowns(a) ? b : a;
}

/// ONE + OTHER; both parts that a roll exchanges are the whole: min(x, n) + max(x - n, 0) = x.
Dim joined_size(const Dim& one, const Dim& other) {
  const Atom *smaller = sole_atom(one), *left = sole_atom(other);
  if (smaller && left && smaller->kind == Atom::Kind::kMax) std::swap(smaller, left);
  if (!smaller || !left || smaller->kind != Atom::Kind::kMin || left->kind != Atom::Kind::kMax) return one + other;
  for (const size_t whole : {0, 1}) {
    const Dim &x = smaller->operands[whole], &n = smaller->operands[1 - whole];
    const Dim rest = maximum(x - n, 0);
    const Atom* atom = sole_atom(rest);
    if (atom && atom->name == left->name) return x;
  }
  return one + other;
}

void concat(RuleContext& context) {
  const size_t count = context.node().inputs.size();
  std::vector<MaybeShape> parts;
  for (size_t i = 0; i < count; ++i) parts.push_back(context.shape(i));
  auto joined = joined_shape(parts, context.node().int_attribute("axis", 0), context);
  if (!joined) return;
  if (count == 1) return context.set_same(0, *context.node().inputs[0]);
  context.set_shape(0, *std::move(joined));
}

void split(RuleContext& context) {
  const size_t count = context.node().outputs.size();
  for (size_t i = 0; i < count; ++i) context.set_type(i, context.type(0));
  const MaybeShape shape = context.shape(0);
  if (!shape || count == 0) return;
  const std::optional<size_t> axis = axis_in(context.node().int_attribute("axis", 0), shape->size());
  if (!axis) return;
  const bool by_attribute = context.node().ints_attribute("split") != nullptr;
  const IntegerList numbers = integer_list(context, "split", 1);
  const IntegerData* elements = by_attribute ? nullptr : context.elements(1);
  const Dim equal_part = floor_quotient((*shape)[*axis] + static_cast<int64_t>(count) - 1, static_cast<int64_t>(count));
  for (size_t i = 0; i < count; ++i) {
    if (!context.wants(i)) continue;
    Shape part = *shape;
    Dim& size = part[*axis];
    if (!numbers.given) {
      const bool last = i + 1 == count && count > 1;
      size = last ? size - equal_part * static_cast<int64_t>(count - 1) : equal_part;
    } else if (by_attribute && i < numbers.values->size()) {
      size = (*numbers.values)[i];
    } else {
      const bool known = elements && i < elements->values.size() && elements->values[i].may_be_size();
      size = known ? elements->values[i] : context.fresh(i, *axis);
    }
    context.set_shape(i, std::move(part));
  }
}

void pad(RuleContext& context) {
  const MaybeShape shape = context.shape(0);
  if (!shape) return;
  const bool by_attribute = context.node().ints_attribute("pads") != nullptr;
  std::vector<size_t> axes = all_axes(shape->size());
  Shape result = context.fresh_shape(0, shape->size());
  if (!by_attribute && context.has(3)) {
    const std::optional<std::vector<int64_t>> given = context.numbers(3);
    if (!given) return context.set_shape(0, std::move(result));
    result = *shape;
    axes.clear();
    for (const int64_t number : *given) {
      const std::optional<size_t> axis = axis_in(number, shape->size());
      if (!axis) return;
      axes.push_back(*axis);
    }
  }
  std::vector<Dim> pads;
  if (by_attribute) {
    const auto* ints = context.node().ints_attribute("pads");
    pads.assign(ints->begin(), ints->end());
  } else if (const IntegerData* elements = context.elements(1)) {
    pads = elements->values;
  }
  const bool known = pads.size() == 2 * axes.size();
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = axes[i];
    result[axis] = known ? context.not_negative((*shape)[axis] + pads[i] + pads[i + axes.size()]) : context.fresh(0, axis);
  }
  context.set_shape(0, std::move(result));
}

void depth_to_space(RuleContext& context) {
  const MaybeShape shape = context.shape(0);
  const int64_t block = context.node().int_attribute("blocksize", 0);
  if (!shape || shape->size() != 4 || block <= 0) return;
  const bool to_space = context.node().op() == "DepthToSpace";
  const auto smaller = [&](size_t axis, int64_t by) { return floor_quotient((*shape)[axis], by); };
  const Dim area = Dim(block) * block;
  if (!area.is_constant()) return;
  context.set_shape(0, to_space ? Shape{(*shape)[0], smaller(1, area.value()), (*shape)[2] * block, (*shape)[3] * block}
                                : Shape{(*shape)[0], (*shape)[1] * area, smaller(2, block), smaller(3, block)});
}

constexpr ShapeRule kLayoutRules[] = {
    {"Reshape", reshape},
    {"Flatten", flatten},
    {"Transpose", transpose},
    {"Unsqueeze", unsqueeze},
    {"Squeeze", squeeze},
    {"Expand", expand},
    {"Tile", tile},
    {"Concat", concat},
    {"Split", split},
    {"Pad", pad},
    {"DepthToSpace", depth_to_space},
    {"SpaceToDepth", depth_to_space},
};

}  // namespace

std::optional<Shape> joined_shape(std::span<const MaybeShape> parts, int64_t axis, RuleContext& context) {
  if (parts.empty() || !parts[0]) return std::nullopt;
  Shape result = parts[0].known();
  const std::optional<size_t> joined = axis_in(axis, result.size());
  if (!joined) return std::nullopt;
  for (const MaybeShape part : parts.subspan(1)) {
    if (!part || part->size() != result.size()) return std::nullopt;
    for (size_t k = 0; k < result.size(); ++k) {
      if (k != *joined) context.require_equal(result[k], (*part)[k]);
      result[k] = k == *joined ? joined_size(result[k], (*part)[k]) : better_known(result[k], (*part)[k]);
    }
  }
  return result;
}

std::span<const ShapeRule> layout_rules() { return kLayoutRules; }

}  // namespace attn_opt
