#include "src/opset/step_rules.h"

namespace attn_opt {

const StepRule* find_step_rule(const std::string& op, int version) {
  static const StepRules rules = [] {
    StepRules all;
    add_input_rules(all);
    add_meaning_rules(all);
    add_resize_rules(all);
    add_normalization_rules(all);
    add_attention_rules(all);
    return all;
  }();
  const auto found = rules.find({op, version});
  return found == rules.end() ? nullptr : &found->second;
}

}  // namespace attn_opt
