// What a bias is the sum of.
#pragma once

#include <utility>
#include <vector>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

/// What SUM adds up as addends_of() sees it, and how often.
std::vector<std::pair<Value*, double>> linear_terms(Value& sum, Facts& facts);

/// The values that SUM adds up, by Add, Sum, Sub of what is negative, or twice their Mean, seen through nodes that change
/// nothing, without those that are 0 throughout; SUM itself if it adds nothing up. At most about 16.
std::vector<Value*> addends_of(Value& sum, Facts& facts);

}  // namespace attn_opt
