#include "patterns/scores/laid_over.h"

#include <algorithm>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/layout_checks.h"
#include "src/match/cut_range.h"
#include "src/match/permutation.h"
#include "src/match/positions/written_region.h"

namespace attn_opt {
namespace {

/// Nodes that cut a part out one after the other.
constexpr int kMaxCuts = 8;

/// NUMBER as often as the axes of WHOLE from FIRST on say.
Value* repeated(int64_t number, Value& whole, size_t first, InnerValues& inner, Facts& facts) {
  const Shape shape = facts.shape(whole).known();
  std::vector<Value*> sizes;
  for (size_t axis = first; axis < shape.size(); ++axis) sizes.push_back(inner.size_above(shape[axis], whole));
  Value* one = inner.number(number, onnx::TensorProto::INT64);
  return sizes.empty() ? one : inner.build().node("Expand", {one, inner.concat(sizes, 0)});
}

/// The booleans where SCATTER lays one update over each that is true, before they are expanded to what it lays them over; null
/// if its indices are no NonZero of such.
Value* truths_of(const Node& scatter, Facts& facts) {
  if (!scatter.is("ScatterND")) return nullptr;
  const Node* turned = canonical(*scatter.inputs[1], facts).producer;
  const bool is_turned = turned && turned->is("Transpose") && permutation(*turned, facts) == std::vector<int64_t>{1, 0};
  const Node* places = is_turned ? canonical(*turned->inputs[0], facts).producer : nullptr;
  if (!places || !places->is("NonZero")) return nullptr;
  Value& truths = canonical(*places->inputs[0], facts);
  const MaybeShape own = facts.shape(truths), whole = facts.shape(*scatter.inputs[0]);
  if (facts.type(truths) != onnx::TensorProto::BOOL || !own || !whole || *own != *whole) return nullptr;
  return truths.producer && truths.producer->is("Expand") ? truths.producer->inputs[0] : &truths;
}

}  // namespace

bool lays_over(const Node& node) {
  if (node.is("Trilu")) return node.input(0);
  const bool scatters = node.is("ScatterND") || node.is("ScatterElements");
  return scatters && node.input(0) && node.input(1) && node.input(2) && node.string_attribute("reduction", "none") == "none";
}

std::optional<Literal> left_by(const Node& node, Node& reader, MatchContext& context) {
  Facts& facts = context.facts;
  const MaybeShape shape = facts.shape(*node.inputs[0]);
  const bool is_triangle = node.is("Trilu");
  if (!shape || shape->size() < 2 || (!is_triangle && !facts.shape(*node.inputs[2]))) return std::nullopt;
  if (Value* truths = truths_of(node, facts)) return Literal{truths, false};
  InnerValues inner(reader, context);
  std::vector<Value*> inputs(node.inputs.begin(), node.inputs.end());
  inputs[0] = repeated(is_triangle ? 1 : 0, *node.inputs[0], is_triangle ? shape->size() - 2 : 0, inner, facts);
  if (!is_triangle) inputs[2] = repeated(1, *node.inputs[2], 0, inner, facts);
  const bool is_upper = is_triangle && node.int_attribute("upper", 1) != 0;
  const auto diagonal = !is_triangle ? std::nullopt : node.input(1) ? facts.scalar(*node.inputs[1]) : std::optional(0.0);
  // What an upper triangle leaves is what the lower one below it does not: the two are one condition then.
  if (diagonal)
    inputs = {inputs[0], inner.number(static_cast<int64_t>(*diagonal) - (is_upper ? 1 : 0), onnx::TensorProto::INT64)};
  Value* places = diagonal ? inner.build().node("Trilu", inputs, {GraphBuilder::attribute("upper", int64_t{0})})
                           : inner.again(node, inputs);
  Value* booleans = inner.build().node("Cast", {places}, {GraphBuilder::attribute("to", int64_t{onnx::TensorProto::BOOL})});
  return Literal{booleans, is_triangle && !(diagonal && is_upper)};
}

namespace {

/// Elements of SOURCE beside each other: their axis I is its axis AXES[I], from FIRST[I] on.
struct Region {
  const Value* source = nullptr;
  std::vector<int64_t> axes;
  Shape first;

  bool operator==(const Region& other) const = default;
};

/// What VALUE is of the first value above it that is not cut out of another.
Region region_of(Value& value, Facts& facts) {
  const Untransposed seen = untransposed(value, facts);
  Region region{seen.value, seen.at, Shape(seen.at.size(), 0)};
  for (int cuts = 0; cuts < kMaxCuts; ++cuts) {
    const auto cut = cut_range(*region.source, facts);
    if (!cut) break;
    const Untransposed above = untransposed(*cut->source, facts);
    for (size_t i = 0; i < region.axes.size(); ++i) {
      const auto axis = static_cast<size_t>(region.axes[i]);
      if (axis == cut->axis) region.first[i] = region.first[i] + cut->first;
      region.axes[i] = above.at[axis];
    }
    region.source = above.value;
  }
  return region;
}

/// VALUE, which is added to the COUNT elements from FIRST on along each axis.
struct PartAddend {
  Value* value = nullptr;
  Shape first, count;
};

/// Reads sums of a part of scores that are written over that part.
class SumInPlace {
 public:
  SumInPlace(Node& reader, MatchContext& context) : facts_(context.facts), inner_(reader, context) {}

  /// The sum that SCATTER is; null if it does anything else.
  Value* read(const Node& scatter) {
    Value& data = *scatter.inputs[0];
    const auto addend = addend_of(scatter, region_of(data, facts_));
    Value* all = addend ? padded(*addend, data) : nullptr;
    return all ? inner_.sum(&data, all) : nullptr;
  }

 private:
  /// What SCATTER adds to its data, which lie as DATA says; nullopt if it does anything else.
  std::optional<PartAddend> addend_of(const Node& scatter, const Region& data) {
    const auto written = written_region(scatter, facts_);
    if (!written || ++nodes_ > kMaxCuts || region_of(*scatter.inputs[0], facts_) != data) return std::nullopt;
    Region part = data;
    for (size_t axis = 0; axis < part.first.size(); ++axis) part.first[axis] = part.first[axis] + written->first[axis];
    auto addend = addend_within(*written->updates, part);
    for (size_t axis = 0; addend && axis < part.first.size(); ++axis)
      addend->first[axis] = addend->first[axis] + written->first[axis];
    return addend;
  }

  /// What SUM adds to PART, as its own axes lie; nullopt if it is anything else.
  std::optional<PartAddend> addend_within(Value& sum, const Region& part) {
    const Node* node = canonical(sum, facts_).producer;
    const MaybeShape shape = facts_.shape(sum);
    if (!node || !shape) return std::nullopt;
    if (node->is("ScatterND")) return addend_of(*node, part);
    if (const std::vector<int64_t> perm = permutation(*node, shape->size()); !perm.empty()) return before(*node, perm, part);
    if (!has(*node, Trait::kAdds) || node->inputs.size() != 2) return std::nullopt;
    for (const size_t at : {0, 1}) {
      const MaybeShape own = facts_.shape(*node->inputs[at]);
      if (times_added(*node, at) != 1 || !own || *own != *shape || region_of(*node->inputs[at], facts_) != part) continue;
      return PartAddend{inner_.scaled(node->inputs[1 - at], times_added(*node, 1 - at)), Shape(shape->size(), 0), *shape};
    }
    return std::nullopt;
  }

  /// addend_within() what TRANSPOSE by PERM makes.
  std::optional<PartAddend> before(const Node& transpose, const std::vector<int64_t>& perm, const Region& part) {
    Region above = part;
    for (size_t i = 0; i < perm.size(); ++i) {
      above.axes[static_cast<size_t>(perm[i])] = part.axes[i];
      above.first[static_cast<size_t>(perm[i])] = part.first[i];
    }
    auto addend = addend_within(*transpose.inputs[0], above);
    if (!addend) return std::nullopt;
    PartAddend turned{inner_.transposed(inner_.raised(addend->value, perm.size()), perm), {}, {}};
    for (const int64_t axis : perm) {
      turned.first.push_back(addend->first[static_cast<size_t>(axis)]);
      turned.count.push_back(addend->count[static_cast<size_t>(axis)]);
    }
    return turned;
  }

  /// SIZE, of an axis of VALUE, less COUNT.
  Value* size_without(const Dim& size, int64_t count, Value& value) {
    if (size.is_constant()) return inner_.build().ints({size.value() - count});
    Value* whole = inner_.size_above(size, value);
    return whole ? inner_.build().node("Sub", {whole, inner_.build().ints({count})}) : nullptr;
  }

  /// ADDEND and zeros around it, so that it is added to all of DATA; null if it is not known how many.
  Value* padded(const PartAddend& addend, Value& data) {
    const Shape whole = facts_.shape(data).known();
    Value* value = inner_.raised(addend.value, whole.size());
    const MaybeShape own = facts_.shape(*value);
    if (!own) return nullptr;
    std::vector<Value*> sizes;
    std::vector<int64_t> pads(2 * whole.size());
    bool is_repeated = false;
    for (size_t axis = 0; axis < whole.size(); ++axis) {
      const Dim &first = addend.first[axis], behind = whole[axis] - first - addend.count[axis];
      if (!first.is_constant() || !behind.is_constant() || behind.value() < 0) return nullptr;
      pads[axis] = first.value();
      pads[whole.size() + axis] = behind.value();
      const int64_t lacking = first.value() + behind.value();
      const bool is_one_of_many = lacking > 0 && (*own)[axis] != addend.count[axis];
      if (is_one_of_many && !(*own)[axis].is(1)) return nullptr;
      is_repeated |= is_one_of_many;
      sizes.push_back(is_one_of_many ? size_without(whole[axis], lacking, data) : inner_.build().ints({1}));
      if (!sizes.back()) return nullptr;
    }
    if (is_repeated) value = inner_.build().node("Expand", {value, inner_.concat(sizes, 0)});
    const bool is_padded = std::ranges::any_of(pads, [](int64_t count) { return count != 0; });
    return is_padded ? inner_.build().node("Pad", {value, inner_.build().ints(pads)}) : value;
  }

  Facts& facts_;
  InnerValues inner_;
  int nodes_ = 0;
};

}  // namespace

Value* summed_in_place(Node& node, MatchContext& context) {
  return node.is("ScatterND") && lays_over(node) ? SumInPlace(node, context).read(node) : nullptr;
}

}  // namespace attn_opt
