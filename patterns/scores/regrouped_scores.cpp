#include "patterns/scores/regrouped_scores.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/layout_checks.h"
#include "patterns/products/product_letters.h"
#include "patterns/scores/peel_form.h"
#include "src/match/permutation.h"

namespace attn_opt {
namespace {

constexpr size_t kScoreAxes = 3;
/// Nodes between what splits and the product.
constexpr int kMaxAboveSplit = 24;

/// Splits the leading axis of scores into PARTS, of which no more than one has no number for its size.
class SplitScores {
 public:
  SplitScores(Shape parts, Dim whole, Node& reader, MatchContext& context)
      : parts_(std::move(parts)), whole_(std::move(whole)), facts_(context.facts), inner_(reader, context) {}

  /// VALUE, of three axes, with its first one split; null if that is not known to be the product's.
  Value* above(Value& value, int steps) {
    Node* node = canonical(value, facts_).producer;
    const MaybeShape shape = facts_.shape(value);
    if (!node || !shape || shape->size() != kScoreAxes || shape->front() != whole_ || steps == 0) return nullptr;
    const bool is_fused = is_fused_matmul(*node) && !has_batch_behind(*node, 0) && !has_batch_behind(*node, 1);
    if (node->is("MatMul") || is_fused) return of_product(*node);
    if (const std::vector<int64_t> perm = permutation(*node, kScoreAxes); !perm.empty() && perm[0] == 0)
      return of_transposed(*node, perm, steps);
    return has(*node, Trait::kElementwise) ? of_elements(*node, steps) : nullptr;
  }

 private:
  Value* of_transposed(const Node& node, const std::vector<int64_t>& perm, int steps) {
    Value* source = above(*node.inputs[0], steps - 1);
    const auto added = static_cast<int64_t>(parts_.size()) - 1;
    std::vector<int64_t> axes(parts_.size());
    std::iota(axes.begin(), axes.end(), 0);
    for (size_t axis = 1; axis < kScoreAxes; ++axis) axes.push_back(perm[axis] + added);
    return source ? inner_.transposed(source, axes) : nullptr;
  }

  Value* of_product(const Node& product) {
    std::vector<Value*> operands;
    for (Value* input : product.inputs) {
      const MaybeShape own = facts_.shape(*input);
      if (!own || own->size() != kScoreAxes || own->front() != whole_) return nullptr;
      operands.push_back(split(*input));
    }
    return inner_.again(product, operands);
  }

  Value* of_elements(const Node& node, int steps) {
    std::vector<Value*> operands(node.inputs.begin(), node.inputs.end());
    bool reaches_product = false;
    for (Value*& operand : operands) {
      const MaybeShape own = operand ? facts_.shape(*operand) : nullptr;
      if (!operand) continue;
      if (!own || own->size() > kScoreAxes) return nullptr;
      if (own->size() < kScoreAxes) continue;
      const bool are_scores = may_be_scores(*operand, [](const Node&) { return true; }, facts_);
      Value* apart = are_scores ? above(*operand, steps - 1) : nullptr;
      reaches_product |= apart != nullptr;
      if (!apart && own->front() != whole_ && !own->front().is(1)) return nullptr;
      operand = apart                    ? apart
                : own->front() == whole_ ? split(*operand)
                                         : inner_.raised(operand, parts_.size() + kScoreAxes - 1);
    }
    return reaches_product ? inner_.again(node, operands) : nullptr;
  }

  Value* split(Value& value) {
    std::vector<Value*> sizes;
    for (const Dim& part : parts_) sizes.push_back(inner_.build().ints({part.is_constant() ? part.value() : -1}));
    for (size_t axis = 1; axis < kScoreAxes; ++axis) sizes.push_back(inner_.size(value, static_cast<int64_t>(axis)));
    return inner_.build().node("Reshape", {&value, inner_.concat(sizes, 0)});
  }

  Shape parts_;
  Dim whole_;
  Facts& facts_;
  InnerValues inner_;
};

}  // namespace

Value* split_above(Node& reshape, MatchContext& context) {
  const auto has_score_axes = [](const Shape& shape) { return shape.size() == kScoreAxes; };
  Value* source = before_regroupings(reshape, has_score_axes, context.facts);
  const MaybeShape before = source ? context.facts.shape(*source) : nullptr;
  const MaybeShape after = context.facts.shape(*reshape.outputs[0]);
  if (!before || !after || after->size() <= kScoreAxes) return nullptr;
  const size_t count = after->size() - kScoreAxes + 1;
  Shape parts = *after;
  parts.resize(count);
  Dim whole = 1;
  for (const Dim& part : parts) whole = whole * part;
  const auto is_open = [](const Dim& part) { return !part.is_constant(); };
  const bool keeps_rows = (*after)[count] == (*before)[1] && after->back() == before->back() && whole == before->front();
  if (!keeps_rows || std::ranges::count_if(parts, is_open) > 1) return nullptr;
  return SplitScores(parts, whole, reshape, context).above(*source, kMaxAboveSplit);
}

}  // namespace attn_opt
