#include "src/verify/cone.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <unordered_set>

#include "attn_opt/operator_traits.h"
#include "src/match/sizes/sole_atom.h"

namespace attn_opt {
namespace {

struct Visit {
  Node* node;
  std::vector<Value*> reads;
  size_t next = 0;
};

class ConeWalk {
 public:
  ConeWalk(const std::vector<Value*>& roots, const std::function<bool(Value&)>& is_leaf, size_t limit)
      : roots_(roots.begin(), roots.end()), is_leaf_(is_leaf), limit_(limit) {}

  Expected<Cone> walk(const std::vector<Value*>& roots) {
    for (Value* root : roots) {
      if (!root) continue;
      reach(*root);
      while (!pending_.empty()) {
        if (nodes_.size() > limit_)
          return fail(ErrorCode::kLimit, root->name, "more than " + std::to_string(limit_) + " nodes lead to it");
        advance();
      }
    }
    return std::move(cone_);
  }

 private:
  void advance() {
    Visit& visit = pending_.back();
    if (visit.next < visit.reads.size()) {
      reach(*visit.reads[visit.next++]);
      return;
    }
    cone_.nodes.push_back(visit.node);
    pending_.pop_back();
  }

  void reach(Value& value) {
    if (leaves_.count(&value) || (value.producer && nodes_.count(value.producer))) return;
    if (!value.producer || (!roots_.count(&value) && is_leaf_(value))) {
      leaves_.insert(&value);
      cone_.leaves.push_back(&value);
      return;
    }
    nodes_.insert(value.producer);
    pending_.push_back({value.producer, reads_of(*value.producer)});
  }

  std::unordered_set<const Value*> roots_, leaves_;
  std::unordered_set<const Node*> nodes_;
  std::vector<Visit> pending_;
  const std::function<bool(Value&)>& is_leaf_;
  size_t limit_;
  Cone cone_;
};

/// True if VALUE is how many truths there are.
bool is_count(const Value& value) {
  constexpr int kMostNodes = 6;
  const Value* seen = &value;
  for (int step = 0; step < kMostNodes && seen && seen->producer; ++step) {
    const Node& maker = *seen->producer;
    if (maker.is("ReduceSum") || maker.is("NonZero")) return true;
    if (!has(maker, Trait::kMoves) && !maker.is("Cast") && !maker.is("Concat") && !maker.is("Shape")) return false;
    seen = maker.input(0);
  }
  return false;
}

/// True if SIZE, of a value in GRAPH, is how many truths there are.
bool counts_truths(const Dim& size, const Graph& graph) {
  const Atom* atom = sole_atom(size);
  const Value* named = atom && !named_by(*atom).empty() ? graph.find(named_by(*atom)) : nullptr;
  const Node* maker = named ? named->producer : nullptr;
  if (!maker || maker->is("NonZero")) return maker;
  const Value* sizes = maker->is("Expand") ? maker->input(1) : maker->is("ConstantOfShape") ? maker->input(0) : nullptr;
  return sizes && is_count(*sizes);
}

}  // namespace

std::vector<Value*> reads_of(const Node& node) {
  std::vector<Value*> reads;
  reads.reserve(node.inputs.size());
  for (Value* input : node.inputs)
    if (input) reads.push_back(input);
  for (const Graph* body : node.bodies)
    for (Value* leaf : cone_of_body(*body).leaves)
      if (leaf->graph != body) reads.push_back(leaf);
  return reads;
}

Expected<Cone> cone_of(const std::vector<Value*>& roots, const std::function<bool(Value&)>& is_leaf, size_t limit) {
  return ConeWalk(roots, is_leaf, limit).walk(roots);
}

Cone cone_of_body(const Graph& body) {
  const std::function<bool(Value&)> is_outer = [&](Value& value) { return value.graph != &body; };
  std::vector<Value*> made_here;
  std::copy_if(body.outputs().begin(), body.outputs().end(), std::back_inserter(made_here),
               [&](Value* value) { return value && value->graph == &body; });
  Cone cone = *cone_of(made_here, is_outer, std::numeric_limits<size_t>::max());
  for (Value* output : body.outputs())
    if (output && output->graph != &body) cone.leaves.push_back(output);
  return cone;
}

bool is_counted(const Value& value, Facts& facts) {
  const auto counts = [&](const Dim& size) { return counts_truths(size, *value.graph); };
  const MaybeShape shape = facts.shape(value);
  const IntegerData* integers = facts.integers(value);
  return (shape && std::ranges::any_of(*shape, counts)) || (integers && std::ranges::any_of(integers->values, counts));
}

bool depends(Value& below, const Value& above, const std::unordered_set<const Value*>& ends) {
  std::deque<Value*> pending;
  std::unordered_set<const Value*> seen(ends);
  if (seen.insert(&below).second) pending.push_back(&below);
  for (size_t nodes = 0; !pending.empty() && nodes < kMaxDependenceNodes; pending.pop_front()) {
    const Node* producer = pending.front()->producer;
    if (!producer) continue;
    ++nodes;
    for (Value* read : reads_of(*producer)) {
      if (read == &above) return true;
      if (seen.insert(read).second) pending.push_back(read);
    }
  }
  return false;
}

}  // namespace attn_opt
