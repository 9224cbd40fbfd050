// Layout questions that the walks up and down both ask.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"
#include "attn_opt/internal/axis_map.h"

namespace attn_opt {

/// No axis of a value: one of size 1 that it lacks.
inline constexpr int64_t kNoAxis = -1;

/// Which axis of BEFORE each axis of AFTER is, or kNoAxis, where nothing but axes of size 1 are added and left out; nullopt if
/// more is done.
std::optional<std::vector<int64_t>> unit_moves(const Shape& before, const Shape& after);

/// True if SIZE is OTHER, or was assumed to be so far, and not by READER alone: a mask has the keys of a cache by a name of its
/// own.
bool is_taken_for(const Dim& size, const Dim& other, const Facts& facts, const Node* reader = nullptr);

/// So many nodes are read as one.
inline constexpr int kMaxTogether = 8;

/// The value that NODE, a regrouping, and those it reads leave the last two axes of as they are; null if there is none.
Value* regrouped_from(Node& node, Facts& facts);

/// What NODE, a regrouping, or others right above it, regroup and has a shape that FITS; null if there is none.
Value* before_regroupings(const Node& node, const std::function<bool(const Shape&)>& fits, Facts& facts);

/// A value before Transposes, and which of its axes those of what they make are.
struct Untransposed {
  Value* value = nullptr;
  std::vector<int64_t> at = {};
};

/// VALUE, of which no axis is told where its rank is not known, before Transposes.
Untransposed untransposed(Value& value, Facts& facts);

/// How many axes lie behind the one of MADE that is, in VALUE, the one with BEHIND axes behind it; nullopt unless nodes that
/// move axes, or add or leave out some of size 1, make MADE of VALUE.
std::optional<size_t> axis_in_moved(Value& value, size_t behind, Value& made, Facts& facts);

/// VALUE before Expands of what it is broadcast from anyway where it meets scores.
Value& before_expands(Value& value, Facts& facts);

/// The value of which NODE, a Transpose, with those it reads swaps the last two axes and nothing else; null if there is none.
Value* swapped_from(Node& node, Facts& facts);

/// What the last of a chain of nodes from FIRST on makes, each the only reader of the one before, which together make it of
/// VALUE as ORIGIN says; null if there is none.
Value* end_of_chain(Value& value, Node& first, Value* (*origin)(Node&, Facts&), Facts& facts);

/// What nodes from FIRST on, each the only reader of the one before, make by regrouping it: at most MOST values, nearest first.
std::vector<Value*> regroupings(Node& first, size_t most, Facts& facts);

}  // namespace attn_opt
