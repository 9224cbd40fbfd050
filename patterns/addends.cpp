#include "patterns/addends.h"

#include "attn_opt/canonical.h"

namespace attn_opt {
namespace {

constexpr size_t kMaxAddends = 16;

bool adds_two(const Value& value) {
  const Node* node = value.producer;
  return node && value.output == 0 && node->is("Add") && node->input(0) && node->input(1);
}

}  // namespace

std::vector<Value*> addends_of(Value& sum, Facts& facts) {
  std::vector<Value*> pending{&sum}, addends;
  while (!pending.empty()) {
    Value& seen = canonical(*pending.back(), facts);
    pending.pop_back();
    if (facts.uniform(seen) == 0.0) continue;
    if (!adds_two(seen) || pending.size() + addends.size() >= kMaxAddends) {
      addends.push_back(&seen);
      continue;
    }
    pending.push_back(seen.producer->inputs[1]);
    pending.push_back(seen.producer->inputs[0]);
  }
  return addends;
}

}  // namespace attn_opt
