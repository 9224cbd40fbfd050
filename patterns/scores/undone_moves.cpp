#include "patterns/scores/undone_moves.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "src/match/permutation.h"

namespace attn_opt {
namespace {

constexpr int kMostMoves = 6;
constexpr int kMostValues = 12;

class MovesUndone {
 public:
  MovesUndone(Node& last, MatchContext& context) : facts_(context.facts), inner_(last, context) {
    Node* node = &last;
    for (int step = 0; node && has(*node, Trait::kKeepsAll) && step < kMostMoves; ++step) {
      const bool is_regrouped_again = !node->is("Transpose") && !moves_.empty() && !moves_.back()->is("Transpose");
      if (!is_regrouped_again) moves_.push_back(node);
      above_ = &canonical(*node->inputs[0], facts_);
      node = above_->producer;
    }
  }

  /// With KEYS on one axis wherever they lie: what masks some of them is told by that.
  Value* read(size_t keys) {
    const MaybeShape whole = facts_.shape(*moves_.front()->outputs[0]), shape = above_ ? facts_.shape(*above_) : nullptr;
    const bool has_keys = whole && shape && keys < whole->size() && std::ranges::find(*shape, (*whole)[keys]) != shape->end();
    return has_keys ? without(*above_) : nullptr;
  }

 private:
  /// VALUE moved as all moves together do; null where sizes are not known.
  Value* moved(Value* value) {
    for (auto move = moves_.rbegin(); value && move != moves_.rend(); ++move) {
      const MaybeShape shape = facts_.shape(*(*move)->outputs[0]);
      const std::vector<int64_t> perm = permutation(**move, facts_);
      if (!shape || ((*move)->is("Transpose") && perm.empty())) return nullptr;
      value = perm.empty() ? inner_.shaped("Reshape", value, *shape, *above_) : inner_.transposed(value, perm);
    }
    return value;
  }

  /// What VALUE is before the moves that these undo, with what is elementwise below those; null if there are none.
  Value* without(Value& value) {
    const MaybeShape shape = facts_.shape(value);
    Node* node = value.producer;
    if (!shape || !node || ++values_ > kMostValues) return nullptr;
    if (has(*node, Trait::kKeepsAll)) {
      Value* back = moved(&value);
      Value* before = back ? &canonical(*back, facts_) : nullptr;
      return before && before->producer && before->producer->placement != Placement::kUnplaced ? before : nullptr;
    }
    if (!has(*node, Trait::kElementwise)) return nullptr;
    for (size_t at = 0; at < node->inputs.size(); ++at) {
      const MaybeShape own = node->inputs[at] ? facts_.shape(*node->inputs[at]) : nullptr;
      Value* scores = own && *own == *shape ? without(canonical(*node->inputs[at], facts_)) : nullptr;
      const auto operands = scores ? operands_beside(*scores, *node, at, *shape) : std::nullopt;
      if (operands) return inner_.again(*node, *operands);
    }
    return nullptr;
  }

  /// The operands of NODE, which makes what has SHAPE, moved, where number AT is SCORES then; nullopt if that is not known of
  /// one.
  std::optional<std::vector<Value*>> operands_beside(Value& scores, const Node& node, size_t at, const Shape& shape) {
    std::vector<Value*> operands;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      operands.push_back(i == at ? &scores : node.inputs[i] ? beside(*node.inputs[i], shape) : nullptr);
      if (node.inputs[i] && !operands.back()) return std::nullopt;
    }
    return operands;
  }

  /// OPERAND of what has SHAPE, moved; null where that is not known.
  Value* beside(Value& operand, const Shape& shape) {
    const DataType type = facts_.type(operand);
    const auto number = is_floating(type) ? facts_.uniform(operand) : std::nullopt;
    if (number) return inner_.build().scalar(*number, type);
    const MaybeShape own = facts_.shape(operand);
    if (!own) return nullptr;
    if (own->empty()) return &operand;
    Value* whole = *own == shape ? &operand : inner_.shaped("Expand", &operand, shape, *above_);
    return whole ? moved(whole) : nullptr;
  }

  Facts& facts_;
  InnerValues inner_;
  std::vector<Node*> moves_;  ///< the last first; of regroupings one after the other the last alone
  Value* above_ = nullptr;    ///< what the first moves
  int values_ = 0;            ///< looked at
};

}  // namespace

Value* with_moves_undone(Node& last, size_t keys, MatchContext& context) { return MovesUndone(last, context).read(keys); }

}  // namespace attn_opt
