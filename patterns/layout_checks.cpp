#include "patterns/layout_checks.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"

namespace attn_opt {
namespace {

Dim leading_product(const Shape& shape) { return product(std::span(shape).first(shape.size() - 2)); }

/// Of AFTER, which BEFORE is regrouped to. One size of the two need not be the same symbol: it is what the others leave of all
/// elements.
bool keep_last_two_axes(MaybeShape before, MaybeShape after) {
  if (!before || before->size() < 2 || after->size() < 2) return false;
  const bool keeps_first = (*before)[before->size() - 2] == (*after)[after->size() - 2],
             keeps_last = before->back() == after->back();
  if (keeps_first && keeps_last) return true;
  const Dim& other = keeps_first ? before->back() : (*before)[before->size() - 2];
  const bool is_left_over = !other.is_constant() && leading_product(*before) == leading_product(*after);
  return (keeps_first || keeps_last) && is_left_over;
}

}  // namespace

Value* regrouped_from(Node& node, Facts& facts) {
  const MaybeShape after = facts.shape(*node.outputs[0]);
  Node* next = &node;
  for (int step = 0; after && next && has(*next, Trait::kRegroups) && step < kMaxTogether; ++step) {
    Value& source = canonical(*next->inputs[0], facts);
    if (keep_last_two_axes(facts.shape(source), after)) return &source;
    next = source.producer;
  }
  return nullptr;
}

Value* swapped_from(Node& node, Facts& facts) {
  std::vector<int64_t> axes, swapped;
  Node* next = &node;
  for (int step = 0; next && next->is("Transpose") && step < kMaxTogether; ++step) {
    const auto* perm = next->ints_attribute("perm");
    if (!perm || perm->size() < 2 || (step > 0 && static_cast<size_t>(perm->size()) != axes.size())) return nullptr;
    if (step == 0) {
      axes.resize(static_cast<size_t>(perm->size()));
      std::iota(axes.begin(), axes.end(), 0);
      swapped = axes;
      std::swap(swapped.back(), swapped[swapped.size() - 2]);
    }
    for (int64_t& axis : axes) axis = perm->Get(static_cast<int>(axis));
    Value& source = canonical(*next->inputs[0], facts);
    if (axes == swapped) return &source;
    next = source.producer;
  }
  return nullptr;
}

}  // namespace attn_opt
