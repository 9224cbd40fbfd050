// Shapes of what a Loop carries from iteration to iteration, by induction: those of the first are taken for granted, and what
// the body makes of them says which the next has, too.
#include "src/match/facts/loop_shapes.h"

#include <algorithm>
#include <set>
#include <string>

#include "src/match/facts/fact_store.h"
#include "src/match/shape_rules/shape_rule.h"
#include "src/match/sizes/sole_atom.h"

namespace attn_opt {
namespace {

constexpr int kMostRounds = 4;
constexpr int kDeepestLoops = 2;  ///< of bodies within each other, at which a Loop is not looked into

/// Adds to READ what BODY, or a graph within it, reads of AROUND and of graphs around that.
void add_captured(const Graph& body, const Graph& around, std::vector<const Value*>& read) {
  const auto add = [&](const Value* value) {
    if (value && around.sees(*value)) read.push_back(value);
  };
  for (const Node* node : body.nodes()) {
    std::ranges::for_each(node->inputs, add);
    for (const Graph* inner : node->bodies) add_captured(*inner, around, read);
  }
  std::ranges::for_each(body.outputs(), add);
}

std::vector<const Value*> captured_by(const Node& loop) {
  std::vector<const Value*> read;
  for (const Graph* body : loop.bodies) add_captured(*body, *loop.graph, read);
  return read;
}

/// Opens in TAKEN, a shape that began as FIRST, what NEXT has otherwise: CARRIED's own sizes. False if there is nothing.
bool open_unlike(const MaybeShape& next, const Shape& first, const std::string& carried, std::optional<Shape>& taken) {
  if (!next || next->size() != first.size()) {
    taken.reset();
    return true;
  }
  bool is_open = false;
  for (size_t axis = 0; axis < first.size(); ++axis) {
    if (!((*taken)[axis] == first[axis]) || (*next)[axis] == first[axis]) continue;
    (*taken)[axis] = Dim::unknown(carried, static_cast<int>(axis));
    is_open = true;
  }
  return is_open;
}

}  // namespace

size_t place_among_inputs(const Value& value) {
  const auto& inputs = value.graph->inputs();
  return static_cast<size_t>(std::ranges::find(inputs, &value) - inputs.begin());
}

std::vector<const Value*> needed_for_carried(const Node& loop) {
  std::vector<const Value*> needed = captured_by(loop);
  for (const Value* input : loop.inputs)
    if (input) needed.push_back(input);
  return needed;
}

const CarriedShapes& FactStore::carried_by(const Node& loop) {
  const auto [found, is_new] = carried_.try_emplace(&loop);
  CarriedShapes& taken = found->second;
  if (!is_new || loop.bodies.size() != 1 || depth_ >= kDeepestLoops) return taken;
  const Graph& body = *loop.bodies[0];
  const size_t count = std::min({body.inputs().size(), body.outputs().size() + 1, loop.inputs.size()});
  if (count <= kFirstCarried) return taken;
  taken.resize(count);
  for (size_t i = kFirstCarried; i < count; ++i)
    if (loop.inputs[i]) taken[i] = computed(*loop.inputs[i]).shape;
  for (int round = 0; round < kMostRounds; ++round) {
    FactStore inside(view_, tensors_);
    inside.enter_loop(loop, *this, taken);
    bool has_changed = false;
    for (size_t i = kFirstCarried; i < count; ++i) {
      if (!taken[i]) continue;
      const Value* made = body.outputs()[i - 1];
      const MaybeShape next = made ? shape_of(inside.fact(*made)) : nullptr;
      has_changed |= open_unlike(next, *computed(*loop.inputs[i]).shape, hint(*body.inputs()[i]), taken[i]);
    }
    if (!has_changed) return taken;
  }
  taken.clear();
  return taken;
}

/// Makes of this store that of one iteration of LOOP, of which AROUND knows the rest of the model; what it carries has the
/// shapes TAKEN.
void FactStore::enter_loop(const Node& loop, FactStore& around, const CarriedShapes& taken) {
  static const std::set<std::string> kNoEquations;
  enter(around, *loop.bodies[0]->inputs()[0]);
  if (!proven_) assume_only(kNoEquations);
  names_ = around.names_;
  for (const Value* value : needed_for_carried(loop)) bind(*value, around, value);
  carried_[&loop] = taken;
}

/// A number that is declared for a value carried through a loop, of which INITIAL has another size, is of one iteration at
/// most, or of none: FACT, of the value called HINT, leaves it open.
void FactStore::open_numbers_unlike(const ValueFact& initial, const std::string& hint, ValueFact& fact) {
  if (!fact.shape || !initial.shape || fact.shape->size() != initial.shape->size()) return;
  open_sizes();
  for (size_t axis = 0; axis < fact.shape->size(); ++axis) {
    Dim& dim = (*fact.shape)[axis];
    if (!dim.is_constant() || dim == (*initial.shape)[axis]) continue;
    dim = Dim::unknown(hint, static_cast<int>(axis));
    open_sizes_->insert(symbol_name(dim));
  }
}

/// Adds to FACT, what is declared of VALUE, what a Loop that starts it with INITIAL gives it.
void FactStore::enter_carried(const Value& value, const Value& initial, ValueFact& fact) {
  const ValueFact& first = computed(initial);
  if (fact.type == onnx::TensorProto::UNDEFINED) fact.type = first.type;
  const CarriedShapes& shapes = carried_by(*value.graph->owner());
  const size_t at = place_among_inputs(value);
  if (at < shapes.size() && shapes[at]) {
    const Shape& each = *shapes[at];
    if (!fact.shape || fact.shape->size() != each.size()) fact.shape = each;
    for (size_t axis = 0; axis < each.size(); ++axis)
      if (each[axis] == (*first.shape)[axis]) (*fact.shape)[axis] = each[axis];
  }
  open_numbers_unlike(first, hint(value), fact);
}

}  // namespace attn_opt
