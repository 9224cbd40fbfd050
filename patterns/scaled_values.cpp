#include "patterns/scaled_values.h"

#include <cmath>
#include <optional>
#include <vector>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"

namespace attn_opt {

std::pair<Value*, double> scaled_by(Node& node, MatchContext& context) {
  Facts& facts = context.facts;
  std::vector<size_t> operands = form_operands(node);
  std::erase_if(operands, [&](size_t number) {
    const Value* operand = node.input(static_cast<int>(number));
    return !operand || facts.uniform(*operand);
  });
  if (operands.empty() || operands.size() > 2 || node.is("Cast") || node.is("Where")) return {};
  FormReader reader(node, context);
  std::optional<ScoreForm> form;
  Value* core = node.inputs[operands[0]];
  if (operands.size() == 1) {
    form = reader.one_step(node, operands[0]);
  } else if (has(node, Trait::kAdds)) {
    core = common_source(*core, *node.inputs[operands[1]], [](Value&) { return true; }, facts);
    form = core ? reader.in_terms_of(*core, *node.outputs[0]) : std::nullopt;
    if (form && cancels(node, *core, *form, reader, facts)) return {};
  }
  if (!form || !is_scale(*form) || !std::isfinite((*form)[0].scale)) return {};
  const Node* mean = canonical(*core, facts).producer;
  const bool is_sum = mean && mean->is("Mean") && static_cast<double>(mean->inputs.size()) == (*form)[0].scale;
  return is_sum ? std::pair<Value*, double>() : std::pair(core, (*form)[0].scale);
}

bool cancels(const Node& node, Value& core, const ScoreForm& form, FormReader& forms, Facts& facts) {
  if (!has(node, Trait::kAdds) || !is_scale(form)) return false;
  for (size_t number = 0; number < node.inputs.size(); ++number) {
    Value* operand = node.inputs[number];
    if (!operand || facts.uniform(*operand)) continue;
    const auto own = forms.in_terms_of(core, *operand);
    const double sign = node.is("Sub") && number == 1 ? -1 : 1;
    if (!own || !is_scale(*own) || !(sign * own->front().scale * form.front().scale > 0)) return true;
  }
  return false;
}

}  // namespace attn_opt
