#include "src/emit/joint_sizes.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "src/match/sizes/broadcast_size.h"
#include "src/match/sizes/sole_atom.h"

namespace attn_opt {
namespace {

/// A size of its own, named by the model or not, or the largest of such.
bool is_symbol(const Dim& size) {
  const Atom* atom = sole_atom(size);
  if (atom && atom->kind == Atom::Kind::kMax) return std::ranges::all_of(atom->operands, is_symbol);
  return atom && atom->kind == Atom::Kind::kSymbol;
}

/// The axis of the scores that axis NUMBER of an operand is; the features are on none.
std::optional<Site::Axis> axis_of(const Placed& operand, size_t number, bool is_query) {
  constexpr size_t kRows = 1;  // from the back
  if (number == 0) return Site::kBatch;
  if (number + 1 + kRows == operand.shape.size()) return is_query ? Site::kQueries : Site::kKeys;
  return number == 1 && operand.shape.size() == 4 ? std::optional(Site::kHeads) : std::nullopt;
}

/// Keys and values of fewer heads than queries keep them, and rows behind a past are no axis of the scores.
bool is_joint(Site::Axis axis, bool is_query, const WritingPlan& plan) {
  if (axis == Site::kHeads) return is_query || plan.kv_group == 1;
  return axis != Site::kKeys || !plan.has_past;
}

/// JOINT, or what it and SIZE broadcast to.
void widen(Dim& joint, const Dim& size, const Facts& facts) {
  if (joint != size) joint = joint_size(joint, size, facts);  // most sizes are the same, and most of these one symbol
}

/// True if an Einsum, or a Mul behind which products are added up, reads OPERAND: it broadcasts where other products do not.
bool is_read_by_broadcast(const Operand& operand) {
  return std::ranges::any_of(operand.views.front().value->uses,
                             [](const Use& use) { return use.node && (use.node->is("Einsum") || use.node->is("Mul")); });
}

/// A MatMul with V takes as many keys as V has rows, whatever the mask broadcasts to.
bool takes_keys_of_values(const Site& site) {
  const Node* product = site.sdpa.outputs.front().value->producer;
  const bool adds_up = product && (product->is("Einsum") || product->is("ReduceSum") || product->is("ReduceMean"));
  return product && !adds_up && !is_read_by_broadcast(site.sdpa.v);
}

/// True if KEYS, the rows of K, broadcast on the way to the softmax: against a mask, whether it is written or hides nothing.
bool are_broadcast(const Dim& keys, Site& site) {
  const MaybeShape softmax = site.facts.shape_of_each_run(*site.match.anchor->outputs.front());
  return softmax && std::ranges::any_of(*softmax, [&](const Dim& size) {
           const Atom* atom = sole_atom(size);
           return atom && is_broadcast(*atom) && std::ranges::find(atom->operands, keys) != atom->operands.end();
         });
}

/// Misses batches and heads of several axes beside a number above 1, as b * 2 beside 2, which is 1 * 2, 2 * 1 or 2: a run tells
/// which of them broadcast. Batch axes told apart are each expanded to what they are together.
Matched<void> check_merged_sizes(const WritingPlan& plan, const Site& site) {
  const std::array<const OperandView*, 3> views{plan.q, plan.k, plan.v};
  for (const Role role : {Role::kBatch, Role::kHead}) {
    const bool is_each_expanded = role == Role::kBatch && !site.batch.empty();
    if (is_each_expanded || (role == Role::kHead && plan.kv_group != 1)) continue;
    std::array<Dim, 3> sizes;
    std::ranges::transform(views, sizes.begin(), [role](const OperandView* view) { return view->axes.size(role); });
    for (const Dim& number : sizes) {
      if (!number.is_constant() || number.is(1)) continue;
      for (size_t other = 0; other < views.size(); ++other)
        if (!sizes[other].is_constant() && views[other]->axes.all_of_role(role).size() > 1)
          return missed("emit.batch", site.match.anchor,
                        number.str() + " of one and " + sizes[other].str() + " of another of Q, K and V may broadcast");
    }
  }
  return {};
}

Shape joint_shape(const WritingPlan& plan, const Placed* mask, const Operands& operands, const Site& site) {
  Shape joint = site.scores;
  for (const Placed* operand : {&operands.q, &operands.k, &operands.v})
    for (size_t i = 0; i < operand->shape.size(); ++i)
      if (const auto axis = axis_of(*operand, i, operand == &operands.q); axis && is_joint(*axis, operand == &operands.q, plan))
        widen(joint[*axis], operand->shape[i], site.facts);
  for (size_t back = 0; mask && back < std::min<size_t>(mask->shape.size(), 4); ++back)
    widen(joint[3 - back], mask->shape[mask->shape.size() - 1 - back], site.facts);
  if (!joint[Site::kKeys].is_constant() && takes_keys_of_values(site))
    joint[Site::kKeys] = plan.has_past ? site.scores[Site::kKeys] : operands.v.shape[operands.v.shape.size() - 2];
  return joint;
}

/// True if SIZE on AXIS of an operand may differ from JOINT where the model runs.
bool must_expand(const Dim& size, Site::Axis axis, const Dim& joint) {
  if (size == joint) return false;
  return axis == Site::kBatch || axis == Site::kHeads || size.is(1) || joint.is_constant() || is_symbol(size);
}

/// What OPERAND is stretched to, 1 where it stays; none if it may stay as it is. Without a mask, nothing but keys makes the
/// scores' keys: that it says a number is worth an Expand to those who read it.
std::optional<Shape> expansion_of(const Placed& operand, bool is_query, const WritingPlan& plan, const Placed* mask,
                                  Site& site) {
  Shape target(operand.shape.size(), 1);
  bool expands = false;
  for (size_t i = 0; i < operand.shape.size(); ++i) {
    const auto axis = axis_of(operand, i, is_query);
    const bool keeps_keys = !mask && takes_keys_of_values(site) && !site.scores[Site::kKeys].is_constant();
    if (!axis || !is_joint(*axis, is_query, plan) || !must_expand(operand.shape[i], *axis, site.scores[*axis])) continue;
    if (axis == Site::kKeys && keeps_keys && !operand.shape[i].is(1) && !are_broadcast(operand.shape[i], site)) continue;
    if (site.scores[*axis].is_constant()) site.equal_sizes.emplace_back(operand.shape[i], site.scores[*axis]);
    target[i] = site.scores[*axis];
    expands = true;
  }
  return expands ? std::optional(std::move(target)) : std::nullopt;
}

Matched<void> expand(Placed& operand, const Shape& target, const WritingPlan& plan, Site& site) {
  for (size_t i = 0; i < target.size(); ++i)
    if (!target[i].is(1)) operand.shape[i] = target[i];
  if (plan.has_past)
    return missed("emit.past", operand.value->producer,
                  "'" + operand.value->name + "' broadcasts to " + to_string(operand.shape));
  ATTN_OPT_MATCH(Value * sizes, site.sizes_of(target, *operand.value));
  operand.value = site.build.node("Expand", {operand.value, sizes});
  return {};
}

using Expansions = std::vector<std::pair<Placed*, Shape>>;

/// Adds to EXPANSIONS that of Q or K to the features of the other. An Einsum, or a Mul behind which products are added up,
/// takes a single one for all; other products ask for as many.
Matched<void> join_features(const WritingPlan& plan, Operands& operands, Expansions& expansions, const Site& site) {
  const Dim one = plan.q->axes.size(Role::kFeature), other = plan.k->axes.size(Role::kFeature);
  if (one == other || !is_read_by_broadcast(site.sdpa.q)) return {};
  const Dim joint = joint_size(one, other, site.facts);
  if (plan.form == IoForm::k3d)
    return missed("emit.form", operands.q.value->producer, "no 3-D form: features broadcast to " + joint.str());
  for (Placed* operand : {&operands.q, &operands.k}) {
    if (operand->shape.back() == joint) continue;
    auto expansion = std::ranges::find(expansions, operand, &Expansions::value_type::first);
    if (expansion == expansions.end()) expansion = expansions.insert(expansion, {operand, Shape(operand->shape.size(), 1)});
    expansion->second.back() = joint;
  }
  return {};
}

/// Stretches Q, K and V to the sizes that they and the mask have together, which may be read of any of them.
Matched<void> expand(const WritingPlan& plan, const Placed* mask, Operands& operands, Site& site) {
  Expansions expansions;
  for (Placed* operand : {&operands.q, &operands.k, &operands.v})
    if (auto target = expansion_of(*operand, operand == &operands.q, plan, mask, site))
      expansions.emplace_back(operand, *std::move(target));
  if (operands.q.shape.back() != operands.k.shape.back()) ATTN_OPT_DONE(join_features(plan, operands, expansions, site));
  if (expansions.empty()) return {};
  for (const Placed* read : std::array<const Placed*, 4>{&operands.q, &operands.k, &operands.v, mask})
    if (read) site.sizes.add(*read->value, read->shape);
  for (auto& [operand, target] : expansions) ATTN_OPT_DONE(expand(*operand, target, plan, site));
  return {};
}

/// False if Q, K or V, whose heads a 3-D form merges with their features, may have fewer than HEADS ask of it.
bool has_heads_of_its_own(const WritingPlan& plan, const Dim& heads) {
  const auto shares = [&](const OperandView& view) { return view.axes.size(Role::kHead) * plan.kv_group == heads; };
  return plan.q->axes.size(Role::kHead) == heads && (plan.expands_key_heads || shares(*plan.k)) &&
         (plan.expands_value_heads || shares(*plan.v));
}

/// Misses what may broadcast in some run: the written node takes sizes that are equal in all. A mask is of one of the joint
/// sizes, or of 1, and stretched to them.
Matched<void> check_for_all_sizes(const WritingPlan& plan, const Operands& operands, const Site& site) {
  const auto miss = [&](const Placed& placed) {
    return missed(
        "emit.shape", placed.value->producer,
        "'" + placed.value->name + "' of shape " + to_string(placed.shape) + " may broadcast to " + to_string(site.scores));
  };
  for (const Placed* operand : {&operands.q, &operands.k, &operands.v})
    for (size_t i = 0; i < operand->shape.size(); ++i)
      if (const auto axis = axis_of(*operand, i, operand == &operands.q); axis && is_joint(*axis, operand == &operands.q, plan))
        if (operand->shape[i] != site.scores[*axis]) return miss(*operand);
  if (!plan.has_past) return {};
  const Shape &key = site.facts.shape(*plan.k->past).known(), &value = site.facts.shape(*plan.v->past).known();
  const bool is_equal = key[0] == site.scores[Site::kBatch] && value[0] == key[0] && key[1] == value[1] && key[2] == value[2] &&
                        plan.k->axes.size(Role::kRow) == plan.v->axes.size(Role::kRow);
  return is_equal ? Matched<void>{} : miss(operands.k);
}

}  // namespace

Dim joint_size(const Dim& one, const Dim& other, const Facts& facts) {
  if (one == other || other.is(1)) return one;
  if (one.is(1)) return other;
  // A size that broadcasts against a number above 1 is that number, or 1.
  if (one.is_constant()) return one;
  if (other.is_constant()) return other;
  if (facts.may_assume() && !(is_symbol(one) && is_symbol(other))) return one;
  // What one of them broadcasts to with others.
  const Dim both = broadcast_size(one, other);
  return both == one || both == other ? both : maximum(one, other);
}

Matched<void> join_sizes(const WritingPlan& plan, const Placed* mask, Operands& operands, Site& site) {
  // An operator of attention broadcasts nothing but its mask: it runs where the sizes of Q, K and V are equal, but for heads.
  const Node& anchor = *site.match.anchor;
  const bool is_operator = !anchor.domain().empty() || anchor.is("Attention");
  if (is_operator && !plan.expands_key_heads && !plan.expands_value_heads) return {};
  ATTN_OPT_DONE(check_merged_sizes(plan, site));
  const Dim heads = site.scores[Site::kHeads];
  site.scores = joint_shape(plan, mask, operands, site);
  if (plan.form == IoForm::k3d && !(site.scores[Site::kHeads] == heads && has_heads_of_its_own(plan, heads)))
    return missed("emit.form", operands.q.value->producer, "no 3-D form: " + heads.str() + " heads broadcast");
  ATTN_OPT_DONE(expand(plan, mask, operands, site));
  return site.facts.may_assume() ? Matched<void>{} : check_for_all_sizes(plan, operands, site);
}

}  // namespace attn_opt
