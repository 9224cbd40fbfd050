// Depth-first walk over what values depend on, with a stack on the heap: chains of any length are fine.
#pragma once

#include <utility>
#include <vector>

#include "attn_opt/graph.h"

namespace attn_opt {

/// Calls FINISH(value) for ROOT and, before it, for all it depends on that is not DONE(value).
/// DEPENDENCIES(value, stage) gives the values of stages 0, 1, ... until one is empty; each stage is finished
/// before the next is asked for. No value depends on itself: a ModelGraph has no cycles.
template <class Done, class Dependencies, class Finish>
void post_order(const Value& root, Done done, Dependencies dependencies, Finish finish) {
  struct Frame {
    const Value* value;
    std::vector<const Value*> pending;
    size_t next = 0;
    int stage = 0;
  };
  if (done(root)) return;
  std::vector<Frame> stack;
  stack.push_back({&root, dependencies(root, 0)});
  while (!stack.empty()) {
    Frame& frame = stack.back();
    if (frame.next < frame.pending.size()) {
      const Value* value = frame.pending[frame.next++];
      if (!done(*value)) stack.push_back({value, dependencies(*value, 0)});
    } else if (!frame.pending.empty()) {
      frame.pending = dependencies(*frame.value, ++frame.stage);
      frame.next = 0;
    } else {
      const Value* value = frame.value;
      stack.pop_back();
      finish(*value);
    }
  }
}

}  // namespace attn_opt
