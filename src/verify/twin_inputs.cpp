#include "src/verify/twin_inputs.h"

#include <algorithm>
#include <array>

#include "src/match/alike.h"
#include "src/verify/draws.h"

namespace attn_opt {
namespace {

bool are_twins(Value& one, Value& other, Facts& facts) {
  int left = kMaxAlike;
  return facts.type(one) == facts.type(other) && are_alike(one, other, left, facts);
}

bool is_operand(const Value& value, const Sdpa& sdpa) {
  return std::ranges::any_of(std::array{&sdpa.q, &sdpa.k, &sdpa.v}, [&](const Operand* operand) {
    return std::ranges::find(operand->views, &value, &OperandView::value) != operand->views.end();
  });
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
  const auto may_be_twin = [&](const SiteInput& input) {
    return input.source == SiteInput::Source::kDrawn && input.value->producer && !input.twin && !is_operand(*input.value, sdpa);
  };
  for (const bool is_given : {true, false})  // what the attention is given is drawn as such
    for (SiteInput& drawn : site.inputs) {
      if (!may_be_twin(drawn) || (role_of(drawn, sdpa) != InputRole::kOther) != is_given) continue;
      for (SiteInput& other : site.inputs)
        if (&other != &drawn && may_be_twin(other) && are_twins(*drawn.value, *other.value, facts)) other.twin = drawn.value;
    }
}

}  // namespace attn_opt
