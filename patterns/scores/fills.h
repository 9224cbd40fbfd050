// The numbers that masks hold, and that masked scores are filled with.
#pragma once

#include <optional>
#include <utility>

#include "attn_opt/facts.h"
#include "attn_opt/internal/sdpa.h"

namespace attn_opt {

/// True if TERM lays a number over the scores, and adds nothing.
bool is_fill(const ScoreTerm& term);

/// The number that all elements of VALUE are, before a cast to a narrower type that makes it -inf: ONNX Runtime computes with
/// halves in float, and leaves such casts out. Nullopt if they are not known to be one.
std::optional<double> number_before_narrowing(Value& value, Facts& facts);

/// The only number beside 0 that VALUE, or what it is copied from, may hold; nullopt if it may hold others.
std::optional<double> number_of_mask(Value& value, Facts& facts);

/// The two numbers, neither of them 0, that a constant VALUE holds and no other; nullopt if it holds others.
std::optional<std::pair<double, double>> two_numbers_in(const Value& value, Facts& facts);

/// True if MASK, of halves, may be -inf where it was a wider number, which some runtimes keep, before a cast.
bool may_be_narrowed(Value& mask, Facts& facts);

/// Lays the lowest number of its type over the scores of SDPA in the place of a fill that nothing is added to, alone or with
/// -inf under or over it; or -inf where exp() is taken of the fill as it is, which makes it 0, unless the model
/// LOWERS_ROWS by anything. A row that keeps no key weighs all alike either way, or has a sum of 0, where scores plus the
/// model's own fill would weigh them as they are. Returns the fill that kept scores must lie above for that; else nullopt.
std::optional<double> deepen_fills(Sdpa& sdpa, bool lowers_rows, Facts& facts);

}  // namespace attn_opt
