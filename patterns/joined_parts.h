// Parts side by side that were made alike, as what is made of all at once.
//
//   Concat(f(x cut in front), f(x cut behind))  =>  f(x)      f elementwise, or along another axis, of any depth
#pragma once

#include <array>
#include <optional>
#include <span>

#include "attn_opt/pattern.h"

namespace attn_opt {

/// PARTS side by side along AXIS, of values that are as long as the parts there: what they were cut from, or nodes like theirs
/// of that, made above READER. Null if they were not made alike.
Value* joined_parts(std::span<Value* const> parts, size_t axis, Node& reader, MatchContext& context);
/// joined_parts() of what CONCAT joins; null if it is none.
Value* joined_parts(const Node& concat, Node& reader, MatchContext& context);
/// True if joined_parts() of CONCAT is no null.
bool are_joined_parts(const Node& concat, Facts& facts);
/// What PARTS, in this order, are cut from along AXIS, each once; null if that is more, or if they are anything else.
Value* cut_into(std::span<Value* const> parts, size_t axis, Facts& facts);

/// The operands of PART, a difference: Sub(a, b), or Add(a, Neg(b)) in either order; nullopt if it is none.
std::optional<std::array<Value*, 2>> operands_of_difference(const Value& part, Facts& facts);

}  // namespace attn_opt
