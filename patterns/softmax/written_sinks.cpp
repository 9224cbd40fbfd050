#include "patterns/softmax/written_sinks.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/same_number.h"
#include "patterns/softmax/exponentials.h"
#include "patterns/softmax/lowered_scores.h"
#include "patterns/softmax/row_reduction.h"

namespace attn_opt {
namespace {

constexpr int kMaxMoves = 8;

/// VALUE, or NUMBER if that is null.
struct Column {
  Value* value = nullptr;
  double number = 0;
};

/// True where NODE only moves or rounds elements, each of which is there afterwards.
bool keeps_numbers(const Node& node, Facts& facts) {
  if (has(node, Trait::kKeepsAll) || (node.domain().empty() && node.is("Expand"))) return true;
  return node.is("Cast") && node.domain().empty() && is_floating(facts.type(*node.inputs[0])) &&
         is_floating(facts.type(*node.outputs[0]));
}

class ColumnReader {
 public:
  ColumnReader(const Lowering& lowering, Node& reader, MatchContext& context)
      : lowering_(lowering), reader_(reader), context_(context), facts_(context.facts) {}

  /// What ADDED is exp() of, before it was lowered.
  std::optional<Column> logarithm(const AddedToSum& added) {
    return added.value ? logarithm_of(*added.value) : logarithm_of(added.number);
  }

 private:
  using Way = std::optional<Column> (ColumnReader::*)(Value&);

  std::optional<Column> logarithm_of(double number) const {
    if (!(number > 0) || !std::isfinite(number) || lowering_.by) return std::nullopt;
    return Column{nullptr, std::log(number) + lowering_.number};
  }

  std::optional<Column> logarithm_of(Value& value) {
    if (const auto number = facts_.uniform(value)) return logarithm_of(*number);
    if (const auto exponent = exponent_in(value, reader_, context_)) return raised(*exponent);
    if (!lowering_.by && is_constant_above_0(value, facts_))
      return with_number(*InnerValues(reader_, context_).build().node("Log", {&value}));
    return moved(value, &ColumnReader::logarithm_of);
  }

  /// EXPONENT, before it was lowered.
  std::optional<Column> raised(const Exponent& exponent) {
    if (!lowering_.by) return with_number(*value_of(exponent, reader_, context_));
    times_ = exponent.factor / lowering_.factor;
    const auto column = raised(*exponent.value);
    if (!column) return std::nullopt;
    const double number = lowering_.factor * column->number + lowering_.number;
    if (!column->value) return Column{nullptr, number};
    return with_number(*value_of({column->value, lowering_.factor}, reader_, context_), number);
  }

  /// What EXPONENT is in the unit of what lowers, before it was lowered.
  ///
  ///   z - m  =>  z      -m  =>  0      c - m + 2 z  =>  2 z + c
  std::optional<Column> raised(Value& exponent) {
    Value *column = nullptr, *lowered_by = nullptr;
    if (times_ == 1 && difference(any(&column), any(&lowered_by))(exponent, facts_) && is_lowering(*lowered_by))
      return Column{column};
    LinearTerms terms = linear_terms_of(exponent, times_, facts_);
    const auto lowering = std::ranges::find_if(terms, [this](const Addend& term) {
      return std::abs(term.coefficient + 1) <= kSameNumber && is_lowering(*term.value);
    });
    if (lowering == terms.end()) return moved(exponent, &ColumnReader::raised);
    terms.erase(lowering);
    return sum_of(terms);
  }

  Column sum_of(const LinearTerms& terms) {
    Column sum;
    for (const Addend& term : terms) {
      if (const auto number = facts_.uniform(*term.value)) {
        sum.number += term.coefficient * *number;
        continue;
      }
      Value* value = value_of({term.value, term.coefficient}, reader_, context_);
      sum.value = sum.value ? InnerValues(reader_, context_).sum(sum.value, value) : value;
    }
    return sum;
  }

  Column with_number(Value& exponent) { return with_number(exponent, lowering_.number); }
  Column with_number(Value& exponent, double number) {
    if (number == 0) return {&exponent};
    InnerValues inner(reader_, context_);
    return {inner.sum(&exponent, inner.build().scalar(number, facts_.type(exponent)))};
  }

  bool is_lowering(Value& value) { return &unmoved(value, facts_) == &unmoved(*lowering_.by, facts_); }

  /// What WAY reads above the node that moves elements to VALUE, moved in the same way; nullopt if it then has another shape.
  std::optional<Column> moved(Value& value, Way way) {
    Node* node = canonical(value, facts_).producer;
    if (!node || !keeps_numbers(*node, facts_) || ++moves_ > kMaxMoves) return std::nullopt;
    const auto before = (this->*way)(*node->inputs[0]);
    if (!before || !before->value) return before;
    const MaybeShape own = facts_.shape(*before->value), whole = facts_.shape(*node->inputs[0]);
    if (!own || !whole || *own != *whole) return std::nullopt;
    return Column{InnerValues(reader_, context_).again(*node, 0, before->value), before->number};
  }

  Lowering lowering_;
  Node& reader_;
  MatchContext& context_;
  Facts& facts_;
  double times_ = 1;  ///< of the lowering's factor, that an exponent is multiplied with
  int moves_ = 0;
};

/// COLUMN, whose last axes lie at AXES of ROWS, with its axes there; null if it has more than one number for a row.
Value* placed_among(const SummedRows& rows, Value& column, const std::vector<int>& axes, Node& reader, MatchContext& context) {
  const MaybeShape own = context.facts.shape(column);
  if (!own || own->size() > axes.size()) return nullptr;
  InnerValues inner(reader, context);
  Value* value = inner.raised(&column, axes.size());
  std::vector<int64_t> units, kept;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    const bool is_unit = axis + own->size() < axes.size() || (*own)[axis + own->size() - axes.size()].is(1);
    if (!is_unit && (axes[axis] < 0 || axes[axis] == static_cast<int>(rows.keys))) return nullptr;
    if (is_unit)
      units.push_back(static_cast<int64_t>(axis));
    else
      kept.push_back(axes[axis]);
  }
  const auto is_straight = [&](size_t axis) {
    return axes[axis] < 0 || axes[axis] == static_cast<int>(axis) || std::ranges::find(units, axis) != units.end();
  };
  std::vector<size_t> all(axes.size());
  std::iota(all.begin(), all.end(), size_t{0});
  if (axes.size() == rows.rank && std::ranges::all_of(all, is_straight)) return value;
  if (!std::ranges::is_sorted(kept)) return nullptr;
  if (!units.empty()) value = inner.build().along("Squeeze", *value, units);
  std::vector<int64_t> added;
  for (int64_t axis = 0; axis < static_cast<int64_t>(rows.rank); ++axis)
    if (std::ranges::find(kept, axis) == kept.end()) added.push_back(axis);
  return inner.unsqueezed(value, added);
}

}  // namespace

Value* column_of(const AddedToSum& added, const Lowering& lowering, const SummedRows& rows, Node& reader,
                 MatchContext& context) {
  const auto column = ColumnReader(lowering, reader, context).logarithm(added);
  if (!column) return nullptr;
  InnerValues inner(reader, context);
  const double number = column->number + added.raised;
  const DataType type = column->value ? context.facts.type(*column->value) : rows.type;
  if (!column->value) {
    const auto constant = Tensor::of<double>(Dims(rows.rank, 1), std::vector{number}).cast(type);
    return constant ? inner.build().constant(*constant) : nullptr;  // scores of no type have none
  }
  Value* placed = placed_among(rows, *column->value, added.axes, reader, context);
  return placed && added.raised != 0 ? inner.sum(placed, inner.build().scalar(added.raised, type)) : placed;
}

}  // namespace attn_opt
