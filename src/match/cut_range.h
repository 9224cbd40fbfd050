// What single nodes cut out of a value along one axis, and what joins such parts again.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

/// COUNT elements of SOURCE from FIRST on along AXIS, and all along the others.
struct CutRange {
  Value* source = nullptr;
  size_t axis = 0;
  Dim first = 0, count = 0;
  bool drops_axis = false;  ///< the part has it no more
};

/// Cheap: true for a Slice, Split or Gather.
bool cuts_out(const Node& node);

/// True for a Gather that drops an axis of one element.
bool drops_single_axis(const Node& node, Facts& facts);

/// What PART, made by a Slice, Split or Gather, is of its source; nullopt if it is anything else, or if that is not known.
std::optional<CutRange> cut_range(const Value& part, Facts& facts);

/// What a Pad or a Concat laid beside others, or a Tile repeated, and PART, made by a Slice, Split or Gather, takes out alone
/// again; null if it is anything else. SEEN gives what a value is a copy of.
Value* cut_back(const Value& part, const std::function<Value&(Value&)>& seen, Facts& facts);

/// cut_range(), or that of the one element which a Gather takes out without its axis.
std::optional<CutRange> taken_range(const Value& part, Facts& facts);

/// What PARTS, side by side in this order, are of one source that begins with them; nullopt if they are anything else. SEEN
/// gives what a value is a copy of.
std::optional<CutRange> joined_range(std::span<Value* const> parts, size_t axis, const std::function<Value&(Value&)>& seen,
                                     Facts& facts);

}  // namespace attn_opt
