// What the body of a Loop hands on from one iteration to the next as it was.
#pragma once

#include <unordered_map>

#include "attn_opt/graph.h"

namespace attn_opt {

struct ValueFact;

/// Answers are kept: a body is looked at once for each value that it carries.
class LoopCopies {
 public:
  /// True if CARRIED, an input of the body of a Loop that begins as INITIAL says, is in each iteration what it was in the
  /// first: what the body makes of the type and shape of INITIAL is a copy of it, so that the next iteration has these again.
  bool hands_on(const Value& carried, const ValueFact& initial);

 private:
  std::unordered_map<const Value*, bool> known_;
};

}  // namespace attn_opt
