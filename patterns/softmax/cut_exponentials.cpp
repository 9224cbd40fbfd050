#include "patterns/softmax/cut_exponentials.h"

#include <optional>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "src/match/cut_range.h"

namespace attn_opt {
namespace {

/// Operators that a part is taken through.
constexpr int kMostCutWithin = 4;

/// The only operand of NODE, elementwise, that has more than one element along the axis FROM_LAST; nullopt if there are others.
std::optional<size_t> operand_along(const Node& node, size_t from_last, Facts& facts) {
  std::optional<size_t> found;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const MaybeShape shape = node.inputs[i] ? facts.shape(*node.inputs[i]) : nullptr;
    if (!shape) return std::nullopt;
    if (shape->size() <= from_last || attn_opt::from_last(*shape, from_last).is(1)) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

}  // namespace

Value* cut_within(Value& cut, size_t axis, Node& reader, MatchContext& context) {
  Facts& facts = context.facts;
  const auto range = cut_range(cut, facts);
  const MaybeShape whole = range ? facts.shape(*range->source) : nullptr;
  if (!whole || range->axis != axis || !range->first.is_constant() || !range->count.is_constant()) return nullptr;
  std::vector<std::pair<Node*, size_t>> within;
  Value* source = &canonical(*range->source, facts);
  const size_t from_last = whole->size() - 1 - range->axis;
  for (int step = 0; step < kMostCutWithin; ++step) {
    Node* node = source->output == 0 ? source->producer : nullptr;
    const auto operand = node && has(*node, Trait::kElementwise) ? operand_along(*node, from_last, facts) : std::nullopt;
    const MaybeShape own = operand ? facts.shape(*node->inputs[*operand]) : nullptr;
    if (!own || own->size() != whole->size()) break;
    within.emplace_back(node, *operand);
    source = &canonical(*node->inputs[*operand], facts);
  }
  if (within.empty()) return nullptr;
  InnerValues inner(reader, context);
  const int64_t first = range->first.value(), end = first + range->count.value();
  Value* made = inner.slice(source, inner.build().ints({first}), inner.build().ints({end}), static_cast<int64_t>(range->axis));
  for (size_t i = within.size(); i-- > 0;) made = inner.again(*within[i].first, within[i].second, made);
  return made;
}

}  // namespace attn_opt
