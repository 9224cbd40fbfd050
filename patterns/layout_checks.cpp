#include "patterns/layout_checks.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "attn_opt/canonical.h"

namespace attn_opt {
namespace {

bool keep_last_two_axes(const Shape* before, const Shape* after) {
  return before && before->size() >= 2 && after->size() >= 2 && std::equal(before->end() - 2, before->end(), after->end() - 2);
}

}  // namespace

bool is_regrouping(const Node& node) {
  return node.is("Reshape") || node.is("Squeeze") || node.is("Unsqueeze") || node.is("Flatten");
}

Value* regrouped_from(Node& node, Facts& facts) {
  const Shape* after = facts.shape(*node.outputs[0]);
  Node* next = &node;
  for (int step = 0; after && next && is_regrouping(*next) && step < kMaxTogether; ++step) {
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
