// The facts of values, found without hashing: values are numbered within their graph.
#pragma once

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <vector>

#include "attn_opt/graph.h"

namespace attn_opt {

template <class Fact>
class FactTable {
 public:
  /// Null if there is none for VALUE yet. Facts stay where they are.
  Fact* find(const Value& value) {
    const auto& slots = slots_of(*value.graph);
    return value.index < slots.size() ? slots[value.index] : nullptr;
  }

  Fact& operator[](const Value& value) {
    auto& slots = slots_of(*value.graph);
    if (value.index >= slots.size()) slots.resize(std::max<size_t>(value.index + 1, value.graph->value_count()));
    Fact*& slot = slots[value.index];
    if (!slot) slot = &facts_.emplace_back();
    return *slot;
  }

 private:
  std::vector<Fact*>& slots_of(const Graph& graph) {
    if (&graph != last_graph_) {
      last_graph_ = &graph;
      last_slots_ = &slots_[&graph];
    }
    return *last_slots_;
  }

  std::deque<Fact> facts_;
  std::unordered_map<const Graph*, std::vector<Fact*>> slots_;
  const Graph* last_graph_ = nullptr;
  std::vector<Fact*>* last_slots_ = nullptr;
};

}  // namespace attn_opt
