// What a mask of booleans is true of.
#pragma once

#include <array>
#include <optional>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

/// That the elements of VALUE are true, or that they are false.
struct Condition {
  Value* value = nullptr;
  bool is_true = true;
};

/// WHOLE seen through Not, nodes that change nothing, and all that says the same of the same booleans in other words
/// (linear_function.h).
Condition affirmed(const Condition& whole, Facts& facts);

/// The two conditions that both hold where WHOLE does, which And or Or made of them; nullopt if there are none. Seen
/// through as affirmed() does.
std::optional<std::array<Condition, 2>> conditions_of(const Condition& whole, Facts& facts);

/// What is NaN where WHOLE holds, and nowhere else: that IsNaN is asked of, or that is compared with itself. Null if WHOLE
/// tells something else.
Value* nan_where(const Condition& whole, Facts& facts);

/// A value that is not finite where a condition holds.
struct NotFinite {
  enum class Kind { kNaN, kInfinity, kPositive, kNegative };
  Value* value = nullptr;
  Kind kind = Kind::kNaN;
};

/// What is NaN, Inf or -Inf where WHOLE holds, whatever else is asked there; nullopt if WHOLE tells something else.
///
///   IsNaN(x), not (x == x)      IsInf(x), x == Inf, x == -Inf      IsInf(x) and x > 0, IsInf(x) and x < 0
std::optional<NotFinite> not_finite_where(const Condition& whole, Facts& facts);

/// True if NODE is x == x, which NaN alone does not fulfil.
bool compares_with_itself(const Node& node, Facts& facts);

/// What NUMBER, a Cast of booleans to numbers, is 1 where it holds and 0 elsewhere; nullopt if it is no such Cast.
std::optional<Condition> condition_of_number(Value& number, Facts& facts);

}  // namespace attn_opt
