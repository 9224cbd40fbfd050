// A softmax whose parts are put side by side.
//
//   Concat(Sigmoid(a - b), 1 - Sigmoid(a - b))  =>  Softmax(Concat(a, b))      and parts that were made alike (joined_parts.h)
#pragma once

#include <optional>

#include "attn_opt/pattern.h"
#include "patterns/softmax/key_blocks.h"
#include "patterns/softmax/softmax_anchor.h"

namespace attn_opt {

/// The softmax of whose probabilities CONCAT puts parts side by side; nullopt if it is of anything else.
std::optional<SoftmaxSite> softmax_of_parts(Node& concat, MatchContext& context);

/// Products with V side by side in CONCAT, of queries, heads or columns each, perhaps in parts themselves, and perhaps each
/// divided by its own sums:
///
///   Concat((e1 V) / sum(e1), (e2 V) / sum(e2))  =>  (e V) / sum(e)      where e = Concat(e1, e2)
///
/// Nullopt if it joins anything else.
std::optional<KeyBlocks> product_in_parts(Node& concat, MatchContext& context);

/// What a node is matched to as the attention of blocks.
using BlocksMatch = Matched<Match> (*)(Node&, KeyBlocks&, MatchContext&);

/// True if nothing reads VALUE but a Concat of few parts, or Concats of such, one of which is a product_in_parts() that MATCH
/// takes.
bool is_part_of_product(Value& value, BlocksMatch match, MatchContext& context);

}  // namespace attn_opt
