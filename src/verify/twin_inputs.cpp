#include "src/verify/twin_inputs.h"

#include <algorithm>
#include <vector>

#include "attn_opt/operator_traits.h"
#include "src/match/alike.h"
#include "src/verify/draws.h"

namespace attn_opt {
namespace {

bool are_twins(Value& one, Value& other, Facts& facts) {
  int left = kMaxAlike;
  return facts.type(one) == facts.type(other) && are_alike(one, other, left, facts);
}

}  // namespace

bool is_made_alike(Value& value, std::span<Node* const> nodes, Facts& facts) {
  const Node* own = value.producer;
  return own && std::ranges::any_of(nodes, [&](const Node* node) {
           Value* made = node != own && node->op() == own->op() && node->outputs.size() > static_cast<size_t>(value.output)
                             ? node->outputs[static_cast<size_t>(value.output)]
                             : nullptr;
           return made && are_twins(value, *made, facts);
         });
}

bool are_booleans_of(Value& below, const Value& above, Facts& facts) {
  constexpr int kMostNodes = 12;
  if (facts.type(below) != onnx::TensorProto::BOOL) return false;
  Value* seen = &below;
  for (int step = 0; step < kMostNodes && seen && seen != &above && seen->producer; ++step) {
    const Node& node = *seen->producer;
    if (has(node, Trait::kMoves)) {
      seen = node.input(0);
      continue;
    }
    const auto is_of_more = [&](const Value* input) { return input && !facts.uniform(*input); };
    if (!has(node, Trait::kElementwise) || std::ranges::count_if(node.inputs, is_of_more) != 1) return false;
    seen = *std::ranges::find_if(node.inputs, is_of_more);
  }
  return seen == &above;
}

void note_twins(CutSite& site, const Sdpa& sdpa, Facts& facts) {
  std::vector<SiteInput*> drawn;
  for (SiteInput& input : site.inputs) {
    const bool is_operand = sdpa.q.has_view(*input.value) || sdpa.k.has_view(*input.value) || sdpa.v.has_view(*input.value);
    if (input.source == SiteInput::Source::kDrawn && input.value->producer && !is_operand) drawn.push_back(&input);
  }
  // What the attention is given is drawn as such.
  std::ranges::stable_sort(drawn, {}, [&](const SiteInput* input) { return role_of(*input, sdpa) == InputRole::kOther; });
  for (auto one = drawn.begin(); one != drawn.end(); ++one)
    for (auto other = one + 1; !(*one)->twin && other != drawn.end(); ++other)
      if (!(*other)->twin && are_twins(*(*one)->value, *(*other)->value, facts)) (*other)->twin = (*one)->value;
}

}  // namespace attn_opt
