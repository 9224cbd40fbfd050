// The nodes that make given values, up to where a cut is made.
#pragma once

#include <functional>
#include <unordered_set>
#include <vector>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"
#include "attn_opt/status.h"

namespace attn_opt {

struct Cone {
  std::vector<Node*> nodes;    ///< each after those it reads
  std::vector<Value*> leaves;  ///< what the nodes read and do not make, in order of first reading
};

/// What NODE reads: its inputs and what its bodies capture.
std::vector<Value*> reads_of(const Node& node);

/// The cone of ROOTS upward to values for which IS_LEAF holds or that no node makes. Roots are never leaves if a node
/// makes them. kLimit beyond LIMIT nodes.
Expected<Cone> cone_of(const std::vector<Value*>& roots, const std::function<bool(Value&)>& is_leaf, size_t limit);

/// The nodes of BODY that its outputs need; leaves are captured values and its own inputs and initializers.
Cone cone_of_body(const Graph& body);

/// True if VALUE has an element for each truth of others, as their places (NonZero) and what is put there, or says how many:
/// no draw of it alone fits the rest.
bool is_counted(const Value& value, Facts& facts);

inline constexpr size_t kMaxDependenceNodes = 200;

/// True if kMaxDependenceNodes at most lead from ABOVE to BELOW, and not by ENDS: the nearest are asked first, what stands
/// above all of them is not.
bool depends(Value& below, const Value& above, const std::unordered_set<const Value*>& ends = {});

}  // namespace attn_opt
