#include "src/match/shape_rules/slice_bounds.h"

#include <algorithm>
#include <functional>

#include "src/match/node_forms.h"

namespace attn_opt {
namespace {

constexpr int kMostCopies = 8;
constexpr size_t kMostValues = 32;

std::vector<Dim> dims_of(const IntegerList& list, const IntegerData* elements) {
  if (elements) return elements->values;
  return list.values ? std::vector<Dim>(list.values->begin(), list.values->end()) : std::vector<Dim>();
}

bool is_constant(const Value* value) { return !value || !value->producer || value->producer->is("Constant"); }

/// True if VALUE is given, or made by copies of what is: to know it asks for no other node.
bool is_given(const Value* value) {
  for (int step = 0; !is_constant(value) && step < kMostCopies; ++step) {
    const Value* before = copied(*value);
    if (!before || std::ranges::count_if(value->producer->inputs, std::not_fn(is_constant)) > 1) return false;
    value = before;
  }
  return is_constant(value);
}

/// The elements of NAME, an attribute of the node of CONTEXT or, in newer opsets, its INPUT; empty if they are not known.
std::vector<Dim> cuts_of(const RuleContext& context, const char* name, size_t input) {
  const bool by_attribute = context.node().ints_attribute(name) != nullptr;
  return dims_of(integer_list(context, name, input), by_attribute ? nullptr : context.elements(input));
}
std::vector<Dim> begins_of(const RuleContext& context) { return cuts_of(context, "starts", 1); }
std::vector<Dim> ends_of(const RuleContext& context) { return cuts_of(context, "ends", 2); }

/// True if SLICE, beside the node of CONTEXT, ends at BEGIN or begins at END, as far as that is known before it is come to.
bool is_beside(const Node& slice, const RuleContext& context, const Dim& begin, const Dim& end) {
  for (const int input : {1, 2})
    if (slice.input(input) && is_given(slice.input(input))) context.store().fact(*slice.input(input));
  const RuleContext other(context.store(), slice);
  const std::vector<Dim> begins = begins_of(other), ends = ends_of(other);
  return std::ranges::find(ends, begin) != ends.end() || std::ranges::find(begins, end) != begins.end();
}

/// The Slices of VALUE, or of copies of it.
std::vector<const Node*> slices_of(const Value& value) {
  std::vector<const Value*> copies{&value};
  std::vector<const Node*> slices;
  for (size_t i = 0; i < copies.size(); ++i) {
    for (const Use& use : copies[i]->uses) {
      if (copies.size() + slices.size() == kMostValues || !use.node) break;
      if (use.node->is("Slice") && use.input == 0) slices.push_back(use.node);
      if (may_copy(*use.node) && use.node->output(0)) copies.push_back(use.node->output(0));
    }
  }
  return slices;
}

}  // namespace

SliceBounds bounds_of(const RuleContext& context) {
  const bool by_attribute = context.node().ints_attribute("starts") != nullptr;
  SliceBounds bounds;
  bounds.begins = begins_of(context);
  bounds.ends = ends_of(context);
  const IntegerList axes = integer_list(context, "axes", 3);
  bounds.axes = axes.values;
  if (!axes.given) {
    const MaybeShape starts = by_attribute ? nullptr : context.shape(1);
    const bool counted = starts && starts->size() == 1 && (*starts)[0].is_constant();
    const size_t count = !bounds.begins.empty() ? bounds.begins.size()
                         : counted              ? static_cast<size_t>((*starts)[0].value())
                                                : context.shape(0).known().size();
    const std::vector<size_t> leading = all_axes(std::min(count, context.shape(0).known().size()));
    bounds.axes.emplace(leading.begin(), leading.end());
  }
  const IntegerList steps = integer_list(context, "steps", 4);
  bounds.steps = steps.values;
  if (!steps.given && bounds.axes) bounds.steps.emplace(bounds.axes->size(), 1);
  return bounds;
}

bool has_part_beside(const RuleContext& context, const Dim& begin, const Dim& end) {
  const Value* whole = context.node().inputs[0];
  for (int step = 0; step < kMostCopies; ++step) {
    const Value* before = copied(*whole);
    if (!before) break;
    whole = before;
  }
  return std::ranges::any_of(
      slices_of(*whole), [&](const Node* slice) { return slice != &context.node() && is_beside(*slice, context, begin, end); });
}

}  // namespace attn_opt
