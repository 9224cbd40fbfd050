// Ranks that the inputs of an operator of com.microsoft have by its documentation, and that the operator's schema leaves
// open.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "attn_opt/pattern.h"

namespace attn_opt {

/// Input number INPUT, which is called NAME, has RANK axes.
struct InputRank {
  size_t input = 0;
  std::string_view name;
  size_t rank = 0;
  bool is_required = false;
};

/// "bias 'b' is (batch, 4)", or of no known rank: VALUE, an input called NAME.
std::string shape_said(std::string_view name, const Value& value, Facts& facts);

/// NODE's inputs in RANKS are known to have their ranks, or are not required and not given. Input number TYPED, in whose type
/// the operator computes, holds floats, the others numbers or truths. Misses: contrib.rank, contrib.type.
Matched<void> check_ranks(const Node& node, std::span<const InputRank> ranks, Facts& facts, size_t typed = 0);

}  // namespace attn_opt
