#include "patterns/products/parted_frame.h"

#include <algorithm>
#include <numeric>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "patterns/inner_values.h"
#include "patterns/layout_checks.h"
#include "patterns/scores/merged_axes.h"
#include "patterns/scores/peel_form.h"
#include "src/match/permutation.h"

namespace attn_opt {
namespace {

class AxisParter {
 public:
  AxisParter(Node& reader, MatchContext& context) : facts_(context.facts), inner_(reader, context) {}

  /// VALUE with each axis as those of PARTED in its run of RUNS; null if nothing above takes these for one.
  Value* above(Value& value, const std::vector<AxisRun>& runs, const Shape& parted, int steps = kMostSteps) {
    Node* node = canonical(value, facts_).producer;
    const MaybeShape shape = facts_.shape(value);
    if (!node || !node->input(0) || !shape || shape->size() != runs.size() || steps == 0 || ++visits_ > kMostVisits)
      return nullptr;
    if (const std::vector<int64_t> perm = permutation(*node, runs.size()); !perm.empty())
      return of_transposed(*node, perm, runs, parted, steps);
    if (has(*node, Trait::kRegroups)) {
      Value* source = before_regroupings(*node, [&](const Shape& before) { return before == parted; }, facts_);
      return source ? &canonical(*source, facts_) : nullptr;
    }
    return has(*node, Trait::kElementwise) ? of_elements(*node, runs, parted, steps) : nullptr;
  }

 private:
  static constexpr int kMostSteps = 24;
  static constexpr int kMostVisits = 64;

  Value* of_transposed(const Node& node, const std::vector<int64_t>& perm, const std::vector<AxisRun>& runs,
                       const Shape& parted, int steps) {
    std::vector<AxisRun> own(runs.size());
    for (size_t axis = 0; axis < perm.size(); ++axis) own[static_cast<size_t>(perm[axis])] = runs[axis];
    Shape before;
    std::vector<int64_t> moved(parted.size());
    for (AxisRun& run : own) {
      for (size_t i = 0; i < run.count; ++i) {
        moved[run.first + i] = std::ssize(before);
        before.push_back(parted[run.first + i]);
      }
      run.first = before.size() - run.count;
    }
    Value* source = above(*node.inputs[0], own, before, steps - 1);
    return source ? inner_.transposed(source, moved) : nullptr;
  }

  Value* of_elements(const Node& node, const std::vector<AxisRun>& runs, const Shape& parted, int steps) {
    const MaybeShape whole = facts_.shape(*node.outputs[0]);
    if (!whole) return nullptr;
    std::vector<Value*> operands(node.inputs.begin(), node.inputs.end());
    bool is_reached = false;
    for (Value*& operand : operands) {
      const MaybeShape own = operand ? facts_.shape(*operand) : nullptr;
      if (!own || own->size() > runs.size()) return nullptr;
      const bool is_whole = *own == *whole;
      const bool are_scores = is_whole && may_be_scores(*operand, [](const Node&) { return true; }, facts_);
      Value* apart = are_scores ? above(*operand, runs, parted, steps - 1) : in_parts(*operand, *whole, runs, parted);
      if (!apart) return nullptr;
      is_reached |= are_scores;
      operand = apart;
    }
    return is_reached ? inner_.again(node, operands) : nullptr;
  }

  /// OPERAND, which broadcasts to WHOLE, that has RUNS: an axis of size 1 becomes as many; null if another size is not that of
  /// WHOLE.
  Value* in_parts(Value& operand, const Shape& whole, const std::vector<AxisRun>& runs, const Shape& parted) {
    const Shape own = facts_.shape(operand).known();
    std::vector<Value*> sizes;
    bool is_parted = false;
    for (size_t axis = 0; axis < own.size(); ++axis) {
      const size_t at = axis + runs.size() - own.size();
      const AxisRun& run = runs[at];
      is_parted |= run.count > 1;
      if (run.count > 1 && !own[axis].is(1) && own[axis] != whole[at]) return nullptr;
      for (size_t i = 0; i < run.count; ++i) {
        const Dim size = own[axis].is(1) ? Dim(1) : run.count == 1 ? own[axis] : parted[run.first + i];
        if (!size.is_constant() && run.count > 1) return nullptr;
        sizes.push_back(size.is_constant() ? inner_.build().ints({size.value()})
                                           : inner_.size(operand, static_cast<int64_t>(axis)));
      }
    }
    return is_parted ? inner_.build().node("Reshape", {&operand, inner_.concat(sizes, 0)}) : &operand;
  }

  Facts& facts_;
  InnerValues inner_;
  int visits_ = 0;
};

}  // namespace

Value* with_axes_parted(Node& reshape, MatchContext& context) {
  const MaybeShape after = context.facts.shape(*reshape.outputs[0]);
  if (!after) return nullptr;
  std::optional<std::vector<AxisRun>> runs;
  const auto parts = [&](const Shape& before) {  // not the flat tensor, of which everything is made
    return before.size() > 1 && (runs = runs_merged(*after, before)).has_value();
  };
  Value* source = before_regroupings(reshape, parts, context.facts);
  const bool is_parted = source && std::ranges::any_of(*runs, [](const AxisRun& run) { return run.count > 1; });
  return is_parted ? AxisParter(reshape, context).above(*source, *runs, *after) : nullptr;
}

}  // namespace attn_opt
