#include "patterns/scores/sum_in_place.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/layout_checks.h"
#include "patterns/scores/form_reader.h"
#include "src/match/cut_range.h"
#include "src/match/positions/written_region.h"

namespace attn_opt {
namespace {

/// Nodes that cut a part out, or write it, one after the other.
constexpr size_t kMostNodes = 8;

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
  for (size_t cuts = 0; cuts < kMostNodes; ++cuts) {
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

/// VALUE, which is added to the COUNT elements from FIRST on along each axis. Null: nothing is.
struct PartAddend {
  Value* value = nullptr;
  Shape first, count;
};

/// Reads sums of a part of scores that are written over that part.
class SumInPlace {
 public:
  SumInPlace(Node& reader, MatchContext& context)
      : reader_(reader), context_(context), facts_(context.facts), inner_(reader, context) {}

  /// The sum that SCATTER is; null if it does anything else.
  Value* read(const Node& scatter) {
    for (Value* data : written_over(scatter)) {
      nodes_ = 0;
      const auto addend = addend_of(scatter, region_of(*data, facts_));
      if (!addend) continue;
      if (!addend->value) return data;
      Value* all = padded(*addend, *data);
      return all ? inner_.sum(data, all) : nullptr;
    }
    return nullptr;
  }

 private:
  /// What SCATTER writes over: its data, and these before parts were written that it hides. PyTorch writes a sum in its place,
  /// and then again.
  std::vector<Value*> written_over(const Node& scatter) const {
    std::vector<Value*> over{scatter.inputs[0]};
    const auto written = written_region(scatter, facts_);
    while (written && over.size() < kMostNodes) {
      const Node* maker = canonical(*over.back(), facts_).producer;
      const auto earlier = maker ? written_region(*maker, facts_) : std::nullopt;
      if (!earlier || !covers(*written, *earlier)) break;
      over.push_back(maker->inputs[0]);
    }
    return over;
  }

  /// True if WRITTEN writes all that EARLIER does.
  bool covers(const WrittenRegion& written, const WrittenRegion& earlier) const {
    const Shape own = facts_.shape(*written.updates).known(), others = facts_.shape(*earlier.updates).known();
    for (size_t axis = 0; axis < own.size(); ++axis) {
      const Dim in_front = earlier.first[axis] - written.first[axis];
      if (!in_front.never_negative() || !(own[axis] - others[axis] - in_front).never_negative()) return false;
    }
    return true;
  }

  /// What SCATTER adds to its data, which lie as DATA says; nullopt if it does anything else.
  std::optional<PartAddend> addend_of(const Node& scatter, const Region& data) {
    const auto written = written_region(scatter, facts_);
    const auto is_data = [&](Value* over) { return region_of(*over, facts_) == data; };
    if (!written || ++nodes_ > kMostNodes || !std::ranges::any_of(written_over(scatter), is_data)) return std::nullopt;
    Region part = data;
    for (size_t axis = 0; axis < part.first.size(); ++axis) part.first[axis] = part.first[axis] + written->first[axis];
    auto addend = addend_within(*written->updates, part);
    for (size_t axis = 0; addend && axis < part.first.size(); ++axis)
      addend->first[axis] = addend->first[axis] + written->first[axis];
    return addend;
  }

  /// What SUM, perhaps behind Transposes, adds to PART, as its own axes lie; nullopt if it is anything else.
  std::optional<PartAddend> addend_within(Value& sum, const Region& part) {
    const Untransposed source = untransposed(sum, facts_);
    Region above = part;
    for (size_t i = 0; i < source.at.size(); ++i) {
      above.axes[static_cast<size_t>(source.at[i])] = part.axes[i];
      above.first[static_cast<size_t>(source.at[i])] = part.first[i];
    }
    auto addend = source.at.size() == part.axes.size() ? addend_of_sum(*source.value, above) : std::nullopt;
    return addend && !std::ranges::is_sorted(source.at) ? turned(*addend, source.at) : addend;
  }

  /// addend_within() what is made by no Transpose. Reshape(Reshape(part) + b)  =>  part + Reshape(b)
  std::optional<PartAddend> addend_of_sum(Value& sum, const Region& part) {
    const MaybeShape shape = facts_.shape(sum);
    if (!shape) return std::nullopt;
    if (sum.producer && sum.producer->is("ScatterND")) return addend_of(*sum.producer, part);
    Value& parted = before_regrouping(sum);
    const MaybeShape apart = facts_.shape(parted);
    const auto added = apart ? added_to(parted, *apart, part, *shape) : std::nullopt;
    if (!added) return std::nullopt;
    Value* value = *added;
    if (value && *apart != *shape) {
      const MaybeShape own = facts_.shape(*value);
      if (!own || *own != *apart) value = inner_.shaped("Expand", value, *apart, parted);
      if (value) value = inner_.shaped("Reshape", value, *shape, sum);
      if (!value) return std::nullopt;
    }
    return PartAddend{value, Shape(shape->size(), 0), *shape};
  }

  /// The first value above VALUE that no node regroups.
  Value& before_regrouping(Value& value) const {
    Value* source = &canonical(value, facts_);
    while (source->producer && has(*source->producer, Trait::kRegroups) && source->producer->input(0))
      source = &canonical(*source->producer->inputs[0], facts_);
    return *source;
  }

  /// What SUM, of the shape APART, adds to PART, of SHAPE; a null value is nothing. Nullopt if it does anything else.
  std::optional<Value*> added_to(Value& sum, const Shape& apart, const Region& part, const Shape& shape) {
    const auto is_together = [&](const Shape& before) { return before == shape; };
    const auto is_part = [&](Value& value) {
      const MaybeShape own = facts_.shape(value);
      if (!own || *own != apart) return false;
      if (*own == shape && region_of(value, facts_) == part) return true;
      const Node* parts = value.producer && has(*value.producer, Trait::kRegroups) ? value.producer : nullptr;
      Value* source = parts ? before_regroupings(*parts, is_together, facts_) : nullptr;
      return source && region_of(*source, facts_) == part;
    };
    Value* core = nearest_source(sum, is_part, facts_);
    const auto form = core ? FormReader(reader_, context_).in_terms_of(*core, sum) : std::nullopt;
    if (!form || form->size() != 1) return std::nullopt;
    const ScoreCase& only = form->front();
    if (only.scale != 1 || !only.dropped.empty()) return std::nullopt;
    const DataType type = facts_.type(sum);
    Value* all = only.number == 0 ? nullptr : inner_.build().scalar(only.number, type);
    for (const Addend& addend : only.addends) {
      if (facts_.type(*addend.value) != type) return std::nullopt;
      Value* value = inner_.scaled(addend.value, addend.coefficient);
      all = all ? inner_.sum(all, value) : value;
    }
    return all;
  }

  /// ADDEND with its axes in the order AT.
  PartAddend turned(const PartAddend& addend, const std::vector<int64_t>& at) {
    Value* value = addend.value ? inner_.transposed(inner_.raised(addend.value, at.size()), at) : nullptr;
    PartAddend turned{value, {}, {}};
    for (const int64_t axis : at) {
      turned.first.push_back(addend.first[static_cast<size_t>(axis)]);
      turned.count.push_back(addend.count[static_cast<size_t>(axis)]);
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

  Node& reader_;
  MatchContext& context_;
  Facts& facts_;
  InnerValues inner_;
  size_t nodes_ = 0;
};

}  // namespace

Value* summed_in_place(Node& node, MatchContext& context) {
  return node.is("ScatterND") && node.input(0) ? SumInPlace(node, context).read(node) : nullptr;
}

}  // namespace attn_opt
