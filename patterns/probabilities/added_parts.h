// Values of one shape that are added up, by several nodes, each so many times.
#pragma once

#include <vector>

#include "attn_opt/pattern.h"
#include "patterns/scores/form_reader.h"

namespace attn_opt {

/// True for what may stand between a product and a sum of it, or be that.
bool may_lead_to_sum(const Node& node);

/// What VALUE is the sum of, by a few nodes upward; VALUE itself if it is no sum.
std::vector<Addend> addends_within(Value& value, MatchContext& context);

}  // namespace attn_opt
