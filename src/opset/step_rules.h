// What is to be done to a node where ONNX changed its operator in a way that the schemas do not tell, or in
// one that they tell but that needs more than a new opset number.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "src/opset/draft.h"
#include "src/opset/raise_site.h"

namespace attn_opt {

/// Makes the draft one of the opset that the rule leads to; returns what is in the way, if anything.
using StepRule = std::function<std::optional<std::string>(Draft&, const RaiseSite&)>;

/// By operator of ai.onnx and the opset in which it changed.
using StepRules = std::map<std::pair<std::string, int>, StepRule>;

/// Null if the schemas say all.
const StepRule* find_step_rule(const std::string& op, int version);

void add_input_rules(StepRules& rules);    ///< attributes that became inputs
void add_meaning_rules(StepRules& rules);  ///< another meaning of the same node
void add_resize_rules(StepRules& rules);
void add_normalization_rules(StepRules& rules);
void add_attention_rules(StepRules& rules);

}  // namespace attn_opt
