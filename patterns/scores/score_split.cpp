#include "patterns/scores/score_split.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/layout_checks.h"
#include "patterns/scores/merged_axes.h"

namespace attn_opt {
namespace {

Dim product_of(const Shape& shape, size_t from, size_t to) {
  Dim product = 1;
  for (size_t axis = from; axis < to; ++axis) product = product * shape[axis];
  return product;
}

/// A value and its shape with as many axes as the parts have.
struct Laid {
  Value* value = nullptr;
  Shape shape;
};

class Merger {
 public:
  Merger(const ScoreSplit& split, Node& node, MatchContext& context)
      : split_(split), leading_(split.merged.size() - 2), facts_(context.facts), inner_(node, context) {}

  std::optional<Laid> laid(Value& value) {
    const MaybeShape own = facts_.shape(value);
    if (!own || own->size() > split_.parts.size()) return std::nullopt;
    Laid laid{&value, Shape(split_.parts.size() - own->size(), 1)};
    laid.shape.insert(laid.shape.end(), own->begin(), own->end());
    return laid;
  }

  size_t key_axes() const { return split_.keeps_keys() ? 1 : split_.parts.size() - leading_ - split_.rows; }

  Laid sum(const Laid& one, const Laid& other) {
    Laid sum{inner_.build().node("Add", {one.value, other.value}), one.shape};
    for (size_t axis = 0; axis < sum.shape.size(); ++axis)
      if (sum.shape[axis].is(1)) sum.shape[axis] = other.shape[axis];
    return sum;
  }

  /// LAID with one axis for the queries and one for the keys; null if a size stands nowhere.
  Value* merged(Laid laid) {
    if (split_.keeps_keys()) return with_rows_regrouped(laid);
    const bool reshapes_parts = &canonical(*split_.merges->inputs[0], facts_) == split_.source && !split_.regroups(facts_);
    if (reshapes_parts && laid.shape == split_.parts)
      return inner_.build().node("Reshape", {laid.value, split_.merges->inputs[1]});
    if (!std::ranges::all_of(split_.parts.begin() + std::ssize(split_.merged) - 2, split_.parts.end(),
                             [](const Dim& size) { return size.is_constant(); }))
      return nullptr;
    std::vector<int64_t> sizes(laid.shape.size(), 1), target(leading_, 0);
    bool expands = false;
    const auto complete = [&](size_t from, size_t to) {
      const bool varies = !product_of(laid.shape, from, to).is(1);
      for (size_t axis = from; varies && axis < to; ++axis) {
        sizes[axis] = split_.parts[axis].value();
        expands |= laid.shape[axis] != split_.parts[axis];
      }
      target.push_back(varies ? product_of(split_.parts, from, to).value() : 1);
    };
    complete(leading_, leading_ + split_.rows);
    complete(leading_ + split_.rows, split_.parts.size());
    // Expand gives it all axes, which what is reshaped by zeros must have.
    const bool lacks_axes = facts_.shape(*laid.value) && facts_.shape(*laid.value).known().size() != laid.shape.size();
    if (expands || lacks_axes) laid.value = inner_.build().node("Expand", {laid.value, inner_.build().ints(sizes)});
    return inner_.reshaped(laid.value, target);
  }

 private:
  /// LAID over the scores before their rows were regrouped; null if a size is not known that this takes.
  Value* with_rows_regrouped(const Laid& laid) {
    const Shape &parts = split_.parts, &merged = split_.merged;
    const size_t rows_end = parts.size() - 1, merged_end = merged.size() - 1;
    const auto is_one = [](const Dim& size) { return size.is(1); };
    if (std::all_of(laid.shape.begin(), laid.shape.end() - 1, is_one))
      return facts_.shape(*laid.value).known().size() <= 1 ? laid.value : inner_.reshaped(laid.value, {-1});
    if (const auto runs = runs_merged({parts.begin(), parts.end() - 1}, {merged.begin(), merged.end() - 1}))
      return with_runs_merged(laid, *runs);
    size_t kept = 0;
    while (kept < std::min(rows_end, merged_end) && parts[kept] == merged[kept]) ++kept;
    const bool varies = !std::all_of(laid.shape.begin() + static_cast<std::ptrdiff_t>(kept), laid.shape.end() - 1, is_one);
    std::vector<int64_t> target(kept, 0);
    for (size_t axis = kept; axis < merged_end; ++axis)
      target.push_back(!varies ? 1 : merged[axis].is_constant() ? merged[axis].value() : -1);
    Value* whole = varies ? with_all_rows(laid, kept) : inner_.raised(laid.value, parts.size());
    if (!whole) return nullptr;
    if (std::ranges::count(target, -1) > 1) return nullptr;
    if (laid.shape.back().is_constant()) {
      target.push_back(laid.shape.back().value());
      return inner_.reshaped(whole, target);
    }
    Value* sizes = inner_.concat({inner_.build().ints(target), inner_.size(*whole, std::ssize(parts) - 1)}, 0);
    return inner_.build().node("Reshape", {whole, sizes});
  }

  /// LAID with one axis for each of RUNS, of size 1 where all its axes are; null if it lacks a size that is not known.
  Value* with_runs_merged(const Laid& laid, const std::vector<AxisRun>& runs) {
    std::vector<int64_t> sizes(laid.shape.size(), 1);
    std::vector<bool> varies;
    for (const AxisRun& run : runs) {
      varies.push_back(!product_of(laid.shape, run.first, run.first + run.count).is(1));
      for (size_t axis = run.first; varies.back() && axis < run.first + run.count; ++axis) {
        if (!laid.shape[axis].is(1)) continue;  // of another name than the part it was taken for equal to it
        if (!split_.parts[axis].is_constant()) return nullptr;
        sizes[axis] = split_.parts[axis].value();
      }
    }
    Value* whole = inner_.build().node("Expand", {laid.value, inner_.build().ints(sizes)});  // it gives it all axes, too
    std::vector<Value*> target;
    for (size_t i = 0; i < runs.size(); ++i)
      target.push_back(varies[i] ? size_of_axes(*whole, runs[i].first, runs[i].first + runs[i].count)
                                 : inner_.build().ints({1}));
    target.push_back(inner_.size(*whole, std::ssize(split_.parts) - 1));
    return inner_.build().node("Reshape", {whole, inner_.concat(target, 0)});
  }

  /// How many elements the axes of WHOLE from FROM to TO have, which are all there, int64 [1].
  Value* size_of_axes(Value& whole, size_t from, size_t to) {
    int64_t number = 1;
    Value* size = nullptr;
    for (size_t axis = from; axis < to; ++axis) {
      if (split_.parts[axis].is_constant()) {
        number *= split_.parts[axis].value();
        continue;
      }
      Value* own = inner_.size(whole, static_cast<int64_t>(axis));
      size = size ? inner_.build().node("Mul", {size, own}) : own;
    }
    if (!size) return inner_.build().ints({number});
    return number == 1 ? size : inner_.build().node("Mul", {size, inner_.build().ints({number})});
  }

  /// LAID with every row from the axis KEPT on; null if a size that it lacks is not known.
  Value* with_all_rows(const Laid& laid, size_t kept) {
    std::vector<int64_t> sizes(laid.shape.size(), 1);
    for (size_t axis = kept; axis + 1 < laid.shape.size(); ++axis) {
      if (laid.shape[axis] == split_.parts[axis]) continue;
      if (!split_.parts[axis].is_constant()) return nullptr;
      sizes[axis] = split_.parts[axis].value();
    }
    // Expand gives it all axes, too.
    return inner_.build().node("Expand", {laid.value, inner_.build().ints(sizes)});
  }

  const ScoreSplit& split_;
  size_t leading_;
  Facts& facts_;
  InnerValues inner_;
};

bool are_summed(const ScoreTerm& one, const ScoreTerm& other) {
  return one.kind == ScoreTerm::Kind::kBias && other.kind == one.kind && other.coefficient == one.coefficient;
}

/// How PARTS make up (…, L, S): the first LEADING axes what stands before L, ROWS behind them L, the rest S. No rows: they do
/// not.
struct PartCounts {
  size_t leading = 0, rows = 0;
};

PartCounts part_counts(const Shape& parts, const Shape& whole) {
  const size_t leading_of_whole = whole.size() - 2;
  const Dim batch = product_of(whole, 0, leading_of_whole);
  // Axes of 1 go with the leading ones where those are as many as in WHOLE.
  for (size_t leading = std::min(leading_of_whole, parts.size()), tried = 0; tried <= parts.size(); ++tried) {
    if (product_of(parts, 0, leading) == batch && parts.size() > leading + 2)
      for (size_t rows = 1; leading + rows < parts.size(); ++rows)
        if (product_of(parts, leading, leading + rows) == whole[leading_of_whole] &&
            product_of(parts, leading + rows, parts.size()) == whole.back())
          return {leading, rows};
    leading = tried;
  }
  return {};
}

/// The first of VALUE and what it was regrouped from whose shape FITS; null if none does.
Value* regrouped_where(Value& value, Facts& facts, const std::function<bool(const Shape&)>& fits) {
  Value* seen = &canonical(value, facts);
  for (int step = 0; step < kMaxTogether; ++step) {
    const MaybeShape shape = facts.shape(*seen);
    if (shape && fits(*shape)) return seen;
    if (!seen->producer || !has(*seen->producer, Trait::kRegroups)) return nullptr;
    seen = &canonical(*seen->producer->inputs[0], facts);
  }
  return nullptr;
}

}  // namespace

bool ScoreSplit::regroups(Facts& facts) const { return merged != facts.shape(*merges->outputs[0]).known(); }

Value* ScoreSplit::whole_above(Value& value, Facts& facts) const {
  const Dim leading = product_of(merged, 0, merged.size() - 2);
  // What a mask was added to may have its keys by another name.
  const auto may_be_keys = [&](const Dim& size) {
    return size == merged.back() || (facts.may_assume() && !size.is_constant() && !merged.back().is_constant());
  };
  return regrouped_where(value, facts, [&](const Shape& own) {
    return own.size() >= 2 && from_last(own, 1) == from_last(merged, 1) && may_be_keys(own.back()) &&
           product_of(own, 0, own.size() - 2) == leading;
  });
}

Value* ScoreSplit::column_above(Value& value, Facts& facts) const {
  if (!keeps_keys() || !merged[merged.size() - 2].is(1)) return nullptr;
  Shape column = merged;
  std::swap(column[column.size() - 2], column.back());
  return regrouped_where(value, facts, [&column](const Shape& own) { return own == column; });
}

ScoreSplit rows_regrouped(Shape parts, Shape merged) { return {nullptr, nullptr, std::move(merged), std::move(parts)}; }

std::optional<ScoreSplit> split_below(Node& node, Facts& facts) {
  const MaybeShape whole = facts.shape(*node.outputs[0]);
  if (!node.is("Reshape") || !whole || whole->size() < 2) return std::nullopt;
  PartCounts counts;
  Value* source = regrouped_where(*node.inputs[0], facts, [&](const Shape& own) {
    counts = part_counts(own, *whole);
    return counts.rows > 0;
  });
  if (!source) return std::nullopt;
  const Shape& parts = facts.shape(*source).known();
  Shape merged(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(counts.leading));
  merged.insert(merged.end(), whole->end() - 2, whole->end());
  return ScoreSplit{&node, source, std::move(merged), parts, counts.rows};
}

Matched<void> merge_terms(const ScoreSplit& split, std::vector<ScoreTerm>& terms, std::optional<JoinedSinks>& sinks, Node& node,
                          MatchContext& context) {
  Merger merger(split, node, context);
  const auto laid_over = terms.begin() + static_cast<std::ptrdiff_t>(split.first_term);
  std::vector<ScoreTerm> merged(terms.begin(), laid_over);
  for (size_t i = split.first_term; i < terms.size(); ++i) {
    ScoreTerm term = terms[i];
    auto laid = merger.laid(*term.value);
    term.parts = {{term.value}, merger.key_axes()};
    while (laid && i + 1 < terms.size() && are_summed(term, terms[i + 1])) {
      const auto next = merger.laid(*terms[++i].value);
      term.parts.values.push_back(terms[i].value);
      laid = next ? std::optional(merger.sum(*laid, *next)) : std::nullopt;
    }
    term.value = laid ? merger.merged(*std::move(laid)) : nullptr;
    if (!term.value)
      return missed("scores.reshape", &node, "what is added to " + to_string(split.parts) + " cannot be reshaped");
    term.frame = split.merged;
    merged.push_back(std::move(term));
  }
  terms = std::move(merged);
  if (!sinks) return {};
  const auto column = split.keeps_keys() && sinks->terms == 0 ? merger.laid(*sinks->value) : std::nullopt;
  sinks->value = column ? merger.merged(*column) : nullptr;
  if (!sinks->value) return missed("scores.sinks", &node, "sinks beside " + to_string(split.parts) + " cannot be reshaped");
  sinks->frame = split.merged;
  return {};
}

}  // namespace attn_opt
