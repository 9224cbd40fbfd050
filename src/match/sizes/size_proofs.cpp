#include "src/match/sizes/size_proofs.h"

#include <algorithm>
#include <vector>

#include "src/match/facts/fact_store.h"
#include "src/match/sizes/sole_atom.h"

namespace attn_opt {
namespace {

/// Nodes behind the one that an assumption is made at whose demands are read.
constexpr size_t kMaxConsumers = 64;

/// The number or size that a minimum or maximum of PART is taken with; null if WHOLE is none of that KIND.
const Dim* bound_of(const Dim& whole, const Dim& part, Atom::Kind kind) {
  const Atom* atom = sole_atom(whole);
  if (!atom || atom->kind != kind) return nullptr;
  if (atom->operands[0] == part) return &atom->operands[1];
  return atom->operands[1] == part ? &atom->operands[0] : nullptr;
}

bool is_pair(const SizeDemand& demand, const Dim& one, const Dim& other) {
  return (demand.one == one && demand.other == other) || (demand.one == other && demand.other == one);
}

/// True if what runs in INNER runs after, or in, a node of OUTER.
bool encloses(const Graph* outer, const Graph* inner) {
  for (; inner; inner = inner->parent())
    if (inner == outer) return true;
  return false;
}

/// Enters SIZE, which is not 0, and what is not 0 then: factors of a product, and both sizes that broadcast to it.
void enter_positive(const Dim& size, std::set<std::string>& positive) {
  if (size.terms().size() != 1 || !positive.insert(size.str()).second) return;
  for (const AtomRef& factor : size.terms()[0].factors) {
    if (factor->may_be_negative) continue;
    positive.insert(factor->name);
    if (factor->kind != Atom::Kind::kSymbol) continue;
    for (const Dim& operand : factor->operands) enter_positive(operand, positive);
  }
}

/// Sizes that are not 0 where no axis of VALUES is empty.
std::set<std::string> positive_sizes(std::span<Value* const> values, FactStore& store) {
  std::set<std::string> positive;
  for (const Value* value : values) {
    const ValueFact& fact = store.fact(*value);
    if (!fact.shape) continue;
    for (const Dim& dim : *fact.shape) enter_positive(dim, positive);
  }
  return positive;
}

/// A number that SIZE, a sum of products of sizes, is never below where all POSITIVE are at least 1.
std::optional<int64_t> least_of(const Dim& size, const std::set<std::string>& positive) {
  int64_t least = 0;
  for (const Dim::Term& term : size.terms()) {
    const auto is_positive = [&](const AtomRef& factor) { return positive.contains(factor->name); };
    const bool counts = std::ranges::all_of(term.factors, is_positive);
    const bool is_size = std::ranges::none_of(term.factors, &Atom::may_be_negative);
    if (term.coefficient < 0 ? !term.factors.empty() : !counts && !is_size) return std::nullopt;
    if (counts && __builtin_add_overflow(least, term.coefficient, &least)) return std::nullopt;
  }
  return least;
}

/// What follows from sizes that are at least 1:
///   max(x, 0) >= 1, or x + 1 >= 1  =>  x = max(x, 0)        x - n >= 0  =>  x = max(x, n)        n - x >= 0  =>  x = min(x, n)
bool follows_from_sizes(const Dim& one, const Dim& other, const std::set<std::string>& positive) {
  if (const Dim* bound = bound_of(other, one, Atom::Kind::kMax)) {
    if (bound->is(0) && (positive.contains(other.str()) || positive.contains((one + 1).str()))) return true;
    if ((bound->is(0) || bound->is(1)) && positive.contains(one.str())) return true;
    return least_of(one - *bound, positive).value_or(-1) >= 0;
  }
  const Dim* bound = bound_of(other, one, Atom::Kind::kMin);
  if (!bound) return false;
  return (one.is(1) && positive.contains(bound->str())) || least_of(*bound - one, positive).value_or(-1) >= 0;
}

/// What follows from DEMAND, that two sizes are equal or, if they broadcast, one of them is 1:
///   n ~ min(n, c), c >= 2   =>  n = min(n, c): if either is 1, n is
///   n ~ c >= 2              =>  n = min(n, c): n is c or 1
///   m = max(x, 0), m >= 1   =>  x = max(x, 0)
bool follows_from(const SizeDemand& demand, const Dim& one, const Dim& other, const std::set<std::string>& positive) {
  if (!demand.broadcasts && is_pair(demand, one, other)) return true;
  if (const Dim* bound = bound_of(other, one, Atom::Kind::kMin))
    return bound->is_constant() && bound->value() >= 2 && (is_pair(demand, one, other) || is_pair(demand, one, *bound));
  const Dim* bound = bound_of(other, one, Atom::Kind::kMax);
  if (!bound || !bound->is(0) || demand.broadcasts) return false;
  const Dim* const equal = demand.one == other ? &demand.other : demand.other == other ? &demand.one : nullptr;
  return equal && positive.contains(equal->str());
}

}  // namespace

SizeProofs::SizeProofs(ModelGraph& view, const TensorStore& tensors, const EqualNames& names)
    : view_(view), tensors_(tensors), names_(names) {}
SizeProofs::~SizeProofs() = default;

bool SizeProofs::holds(const SizeAssumption& assumption, std::span<Value* const> read) {
  if (store_ && holds_now(assumption, read)) return enter(assumption);
  if (store_ && !is_stale_) return false;
  start();
  return holds_now(assumption, read) && enter(assumption);
}

const IntegerData* SizeProofs::integers(const Value& value) {
  if (!store_) start();
  store_->fact(value);
  return store_->elements(value);
}

MaybeShape SizeProofs::shape(const Value& value) {
  if (!store_) start();
  return shape_of(store_->fact(value));
}

void SizeProofs::start() {
  store_ = std::make_unique<FactStore>(view_, tensors_);
  store_->rename(names_);
  store_->assume_only(proven_);
  visited_.clear();
  is_stale_ = false;
}

bool SizeProofs::enter(const SizeAssumption& assumption) {
  if (proven_.insert(equation_text(assumption.one, assumption.other)).second) is_stale_ = true;
  return true;
}

bool SizeProofs::holds_now(const SizeAssumption& assumption, std::span<Value* const> read) {
  if (store_->is_proven(assumption.one, assumption.other)) return true;
  std::set<std::string> positive = positive_sizes(read, *store_);
  enter_demanded(read, positive);
  if (follows_from_sizes(assumption.one, assumption.other, positive)) return true;
  visit_consumers(*assumption.nodes.front());
  const bool has_graph = !read.empty() && encloses(assumption.nodes.front()->graph, read.front()->graph);
  return has_graph && follows_from_demands(assumption, *read.front()->graph, positive);
}

/// Sizes that nodes, without which there is no run, need to be at least 1.
void SizeProofs::enter_demanded(std::span<Value* const> read, std::set<std::string>& positive) {
  for (const PositiveDemand& demand : store_->positive_demands()) {
    if (read.empty() || !encloses(demand.node->graph, read.front()->graph) || !needed_.contains(*demand.node)) continue;
    enter_positive(demand.size, positive);
    positive.insert(demand.size.str());
  }
}

bool SizeProofs::follows_from_demands(const SizeAssumption& assumption, const Graph& graph,
                                      const std::set<std::string>& positive) {
  const auto& demands = store_->demands();
  return std::ranges::any_of(demands, [&](const SizeDemand& demand) {
    return follows_from(demand, assumption.one, assumption.other, positive) && encloses(demand.node->graph, &graph) &&
           needed_.contains(*demand.node);
  });
}

/// Finds the shapes of what is computed from NODE's outputs, breadth first.
void SizeProofs::visit_consumers(const Node& node) {
  std::vector<const Node*> pending{&node};
  for (size_t i = 0; i < pending.size() && i < kMaxConsumers; ++i) {
    if (!visited_.insert(pending[i]).second) continue;
    for (const Value* output : pending[i]->outputs) {
      if (!output) continue;
      store_->fact(*output);
      for (const Use& use : output->uses)
        if (use.node && use.node->placement == Placement::kOfFile && use.node->graph == node.graph) pending.push_back(use.node);
    }
  }
}

}  // namespace attn_opt
