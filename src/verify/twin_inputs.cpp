#include "src/verify/twin_inputs.h"

#include <algorithm>
#include <vector>

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
