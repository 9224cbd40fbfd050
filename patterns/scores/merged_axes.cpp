#include "patterns/scores/merged_axes.h"

#include <algorithm>
#include <numeric>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/layout_checks.h"
#include "patterns/products/parted_frame.h"
#include "patterns/products/products.h"
#include "patterns/scores/peel_form.h"
#include "src/match/node_forms.h"
#include "src/match/permutation.h"
#include "src/match/shape_rules/reduced_axis.h"

namespace attn_opt {
namespace {

/// SHAPE with the axes of RUN for one.
Shape merged_shape(Shape shape, AxisRun run) {
  for (size_t i = 1; i < run.count; ++i) {
    shape[run.first] = shape[run.first] * shape[run.first + 1];
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(run.first) + 1);
  }
  return shape;
}

/// RUN of a value with as many axes behind it as one of OTHER axes has, of RANK; nullopt if that does not hold all of it.
std::optional<AxisRun> run_in(AxisRun run, size_t rank, size_t other) {
  if (run.first + other < rank) return std::nullopt;
  return AxisRun{run.first + other - rank, run.count};
}

/// True where NODE, a Softmax, takes all axes of RUN, which are the last of RANK, for one.
bool takes_for_one(const Node& node, AxisRun run, size_t rank) {
  return node.is("Softmax") && flattens(node) && run.first + run.count == rank &&
         axis_in(softmax_axis(node), rank) == run.first;
}

}  // namespace

std::optional<std::vector<AxisRun>> runs_merged(const Shape& before, const Shape& after) {
  std::vector<AxisRun> runs;
  size_t next = 0;
  for (const Dim& whole : after) {
    AxisRun run{next, 0};
    for (Dim size = 1; run.count == 0 || size != whole; ++run.count) {
      if (next == before.size()) return std::nullopt;
      size = size * before[next++];
    }
    runs.push_back(run);
  }
  return next == before.size() ? std::optional(runs) : std::nullopt;
}

Value* with_last_axes_merged(Node& node, MatchContext& context) {
  const MaybeShape after = context.facts.shape(*node.outputs[0]);
  if (!after) return nullptr;
  std::optional<std::vector<AxisRun>> runs;
  const auto merges = [&](const Shape& before) { return (runs = runs_merged(before, *after)).has_value(); };
  Value* source = before_regroupings(node, merges, context.facts);
  const auto is_merged = [](const AxisRun& run) { return run.count > 1; };
  if (!source || runs->size() < 2 || std::none_of(runs->end() - 2, runs->end(), is_merged)) return nullptr;
  return with_axes_merged(*source, *runs, *after, node, context);
}

Value* with_axes_merged(Value& source, const std::vector<AxisRun>& runs, const Shape& after, Node& reader,
                        MatchContext& context) {
  AxisMerger merger(reader, context);
  Value* merged = &source;
  for (size_t i = runs.size(); i-- > 0;) {
    if (runs[i].count < 2) continue;
    Value* more = merger.above(*merged, runs[i]);
    if (!more) return merged == &source ? nullptr : merger.in_shape(*merged, after);
    merged = more;
  }
  return merged == &source ? nullptr : merged;
}

Value* AxisMerger::reshaped(Value& value, AxisRun run) {
  const Shape shape = merged_shape(facts_.shape(value).known(), run);
  std::vector<Value*> sizes;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const size_t own = axis <= run.first ? axis : axis + run.count - 1;
    const bool is_run = axis == run.first, is_number = shape[axis].is_constant();
    sizes.push_back(is_number ? inner_.build().ints({shape[axis].value()})
                    : is_run  ? inner_.build().ints({-1})
                              : inner_.size(value, static_cast<int64_t>(own)));
  }
  return inner_.build().node("Reshape", {&value, inner_.concat(sizes, 0)});
}

Value* AxisMerger::gathered(Value& operand, std::string& term, const std::string& run) {
  const size_t first = term.find_first_of(run);
  Value* value = &operand;
  if (term.find(run) == std::string::npos) {
    std::string moved = term;
    std::erase_if(moved, [&](char letter) { return has_letter(run, letter); });
    moved.insert(first, run);
    std::vector<int64_t> perm;
    for (const char letter : moved) perm.push_back(static_cast<int64_t>(term.find(letter)));
    value = inner_.transposed(value, perm);
    term = moved;
  }
  return reshaped(*value, {first, run.size()});
}

Value* AxisMerger::product_of(const std::vector<Value*>& operands, ProductLetters letters, const std::string& gone) {
  std::string equation;
  for (std::string* term : {&letters.operands[0], &letters.operands[1], &letters.result}) {
    for (const char letter : gone) std::erase(*term, letter);
    equation += *term + (equation.empty() ? "," : term == &letters.result ? "" : "->");
  }
  return inner_.build().node("Einsum", operands, {GraphBuilder::attribute("equation", equation)});
}

Value* AxisMerger::in_shape(Value& value, const Shape& shape) {
  std::vector<int64_t> sizes;
  for (const Dim& size : shape) sizes.push_back(size.is_constant() ? size.value() : -1);
  return std::ranges::count(sizes, -1) <= 1 ? inner_.reshaped(&value, sizes) : nullptr;
}

Value* AxisMerger::above(Value& value, AxisRun run, int steps) {
  Node* node = canonical(value, facts_).producer;
  const MaybeShape shape = facts_.shape(value);
  if (!node || node->inputs.empty() || !node->inputs[0] || !shape || steps == 0) return nullptr;
  if (const std::vector<int64_t> perm = permutation(*node, shape->size()); !perm.empty())
    return of_transposed(*node, perm, run, steps);
  if (is_product(*node)) return of_product(*node, run);
  if (has(*node, Trait::kRegroups)) {
    const Shape merged = merged_shape(*shape, run);
    Value* source = before_regroupings(*node, [&](const Shape& before) { return before == merged; }, facts_);
    return source ? &canonical(*source, facts_) : nullptr;
  }
  if (takes_for_one(*node, run, shape->size())) {
    Value* scores = above(*node->inputs[0], run, steps - 1);
    const auto axis = static_cast<int64_t>(run.first);
    return scores ? inner_.build().node("Softmax", {scores}, {GraphBuilder::attribute("axis", axis)}) : nullptr;
  }
  return has(*node, Trait::kElementwise) ? of_elements(*node, run, steps) : nullptr;
}

Value* AxisMerger::of_transposed(const Node& node, const std::vector<int64_t>& perm, AxisRun run, int steps) {
  const auto from = static_cast<size_t>(perm[run.first]);
  for (size_t i = 1; i < run.count; ++i)
    if (perm[run.first + i] != perm[run.first] + static_cast<int64_t>(i)) {
      Value* product = of_moved_product(node, perm, run);
      return product ? product : of_moved_elements(node, perm, run, steps);
    }
  Value* source = above(*node.inputs[0], {from, run.count}, steps - 1);
  std::vector<int64_t> merged;
  for (size_t axis = 0; axis < perm.size(); ++axis) {
    if (axis > run.first && axis < run.first + run.count) continue;
    const bool is_behind = static_cast<size_t>(perm[axis]) > from;
    merged.push_back(perm[axis] - (is_behind ? static_cast<int64_t>(run.count) - 1 : 0));
  }
  return source ? inner_.transposed(source, merged) : nullptr;
}

Value* AxisMerger::of_moved_product(const Node& node, std::vector<int64_t> perm, AxisRun run) {
  const Untransposed above = untransposed(*node.inputs[0], facts_);
  const Node* product = above.value->producer;
  if (!product || !is_product(*product)) return nullptr;
  for (int64_t& axis : perm) axis = above.at[static_cast<size_t>(axis)];
  return of_product(*product, run, perm);
}

Value* AxisMerger::of_moved_elements(const Node& node, const std::vector<int64_t>& perm, AxisRun run, int steps) {
  Node* moved = canonical(*node.inputs[0], facts_).producer;
  Value* parted = moved && has(*moved, Trait::kRegroups) ? with_axes_parted(*moved, context_) : nullptr;
  if (parted) moved = parted->producer;
  if (!moved || !has(*moved, Trait::kElementwise)) return nullptr;
  std::vector<Value*> operands(moved->inputs.begin(), moved->inputs.end());
  for (Value*& operand : operands) {
    const MaybeShape own = operand ? facts_.shape(*operand) : nullptr;
    if (!own || own->size() > perm.size()) return nullptr;
    operand = inner_.transposed(inner_.raised(operand, perm.size()), perm);
  }
  return above(*inner_.again(*moved, operands), run, steps - 1);
}

Value* AxisMerger::of_product(const Node& product, AxisRun run, const std::vector<int64_t>& perm) {
  auto letters = product_letters(product, facts_);
  const MaybeShape made = facts_.shape(*product.outputs[0]);
  const auto factor = factor_of_sum(product, facts_);
  if (!factor || !letters || letters->operands.size() != 2 || !made || letters->result.size() != made->size()) return nullptr;
  if (factors_added_up(product, facts_)) return nullptr;  // of which there may be axes without a letter
  Shape moved = *made;
  if (!perm.empty()) letters->result = letters_of_axes(perm, letters->result);
  for (size_t axis = 0; axis < perm.size(); ++axis) moved[axis] = (*made)[static_cast<size_t>(perm[axis])];
  const std::string merged = letters->result.substr(run.first, run.count);
  const Shape sizes(moved.begin() + static_cast<std::ptrdiff_t>(run.first),
                    moved.begin() + static_cast<std::ptrdiff_t>(run.first + run.count));
  std::vector<Value*> operands = operands_of(product, facts_);
  for (size_t i = 0; i < 2; ++i) {
    std::string& term = letters->operands[i];
    if (term.find_first_of(merged) == std::string::npos) continue;
    const Shape own = facts_.shape(*operands[i]).known();
    if (Value* shared = without_repeated(*operands[i], term, merged, sizes)) {
      operands[i] = shared;
      continue;
    }
    for (size_t axis = 0; axis < run.count; ++axis) {
      const bool has_once = std::ranges::count(term, merged[axis]) == 1;
      if (!has_once || own[term.find(merged[axis])] != sizes[axis]) return nullptr;
    }
    operands[i] = gathered(*operands[i], term, merged);
  }
  operands[0] = inner_.scaled(operands[0], *factor);
  return product_of(operands, *letters, merged.substr(1));
}

Value* AxisMerger::without_repeated(Value& operand, std::string& term, const std::string& run, const Shape& sizes) {
  const Shape& own = facts_.shape(operand).known();
  std::vector<int64_t> axes;
  for (size_t i = 0; i < run.size(); ++i) {
    const size_t axis = term.find(run[i]);
    if (axis == std::string::npos) continue;
    if (!own[axis].is(1) || sizes[i].is(1)) return nullptr;
    axes.push_back(static_cast<int64_t>(axis));
  }
  std::erase_if(term, [&](char letter) { return has_letter(run, letter); });
  return inner_.build().along("Squeeze", operand, axes);
}

Value* AxisMerger::of_elements(const Node& node, AxisRun run, int steps) {
  const Shape whole = facts_.shape(*node.outputs[0]).known();
  std::vector<Value*> operands(node.inputs.begin(), node.inputs.end());
  for (Value*& operand : operands) {
    const MaybeShape own = operand ? facts_.shape(*operand) : nullptr;
    if (!operand || (own && run.first + run.count + own->size() <= whole.size())) continue;
    operand = own ? of_broadcast(*operand, whole, run, steps) : nullptr;
    if (!operand) return nullptr;
  }
  return inner_.again(node, operands);
}

/// OPERAND, of an elementwise operator that makes a value of the shape WHOLE: it has some of the axes of RUN.
Value* AxisMerger::of_broadcast(Value& operand, const Shape& whole, AxisRun run, int steps) {
  const Shape own = facts_.shape(operand).known();
  const auto within = run_in(run, whole.size(), own.size());
  const auto size_at = [&](size_t axis) {
    return axis + own.size() < whole.size() ? Dim(1) : own[axis + own.size() - whole.size()];
  };
  bool is_whole = true, is_one = true, is_known = true;
  for (size_t axis = run.first; axis < run.first + run.count; ++axis) {
    is_whole = is_whole && size_at(axis) == whole[axis];
    is_one = is_one && size_at(axis).is(1);
    is_known = is_known && whole[axis].is_constant();
  }
  if (within && is_one) {
    Value* reduced = of_reduced(operand, *within, steps);
    return reduced ? reduced : reshaped(operand, *within);
  }
  if (within && is_whole) {
    const bool are_scores = may_be_scores(operand, [](const Node&) { return true; }, facts_);
    Value* merged = are_scores ? above(operand, *within, steps - 1) : of_reduced(operand, *within, steps);
    return merged ? merged : reshaped(operand, *within);
  }
  if (!is_known) return nullptr;
  std::vector<int64_t> sizes(whole.size(), 1);
  for (size_t axis = run.first; axis < run.first + run.count; ++axis) sizes[axis] = whole[axis].value();
  return reshaped(*inner_.build().node("Expand", {&operand, inner_.build().ints(sizes)}), run);
}

/// ROWS by a Reduce* of the axes of RUN, of size 1 there then, or of others; null if they are none.
Value* AxisMerger::of_reduced(Value& rows, AxisRun run, int steps) {
  Node* node = canonical(rows, facts_).producer;
  const bool keeps = node && !has(*node, Trait::kRegroups);
  if (node && !keeps) node = canonical(*node->inputs[0], facts_).producer;
  const bool reduces = node && has(*node, Trait::kReduces) && node->input(0);
  const MaybeShape before = reduces ? facts_.shape(*node->inputs[0]) : nullptr;
  const auto reduced = before ? reduced_axes(*node, before->size(), facts_) : std::nullopt;
  if (!reduced || reduced->empty() || (node->int_attribute("keepdims", 1) != 0) != keeps) return nullptr;
  std::vector<size_t> axes(run.count);
  std::iota(axes.begin(), axes.end(), run.first);
  const bool are_others =
      std::ranges::none_of(*reduced, [&](size_t axis) { return axis >= run.first && axis < run.first + run.count; });
  Shape left = *before;
  for (const size_t axis : *reduced) left[axis] = 1;
  if ((reduced != axes && !are_others) || left != facts_.shape(rows).known()) return nullptr;
  Value* merged = above(*node->inputs[0], run, steps - 1);
  std::vector<int64_t> gone{static_cast<int64_t>(run.first)};
  if (are_others) gone.clear();
  for (size_t i = 0; are_others && i < reduced->size(); ++i)
    gone.push_back(static_cast<int64_t>((*reduced)[i] < run.first ? (*reduced)[i] : (*reduced)[i] + 1 - run.count));
  return merged ? inner_.build().along(node->op(), *merged, gone) : nullptr;
}

}  // namespace attn_opt
