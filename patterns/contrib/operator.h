// An operator of com.microsoft as a front end.
#pragma once

#include <string_view>

#include "attn_opt/pattern.h"

namespace attn_opt {

/// READER is made of a node and the context, and its read() describes the node. It says what it reads: kName (of the
/// pattern), kOperator and kSummary.
template <class Reader>
class ContribOperator : public Pattern {
 public:
  std::string_view name() const override { return Reader::kName; }
  std::string_view summary() const override { return Reader::kSummary; }
  bool is_anchor(const Node& node) const override { return node.op() == Reader::kOperator && node.domain() == "com.microsoft"; }
  Matched<Match> match(Node& node, MatchContext& context) const override { return Reader(node, context).read(); }
};

}  // namespace attn_opt
