// Conditions that ask of each row whether it has a key.
//
//   ReduceMax(x) > -inf      not all(x == -inf)      any(m)      not all(not m)      ReduceSum(Cast(m)) > 0 ReduceMin(Cast(not
//   m)) == 0
#pragma once

#include <optional>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"

namespace attn_opt {

struct RowTest {
  Value* rows = nullptr;   ///< what is asked of each element of a row
  bool is_number = false;  ///< scores: an element is a key that is not -inf; else booleans: one that is KEEPS
  bool keeps = false;
  bool holds_for_kept = false;  ///< the condition is true for rows with a key, else for those without
  /// Numbers: NaN may be taken for no key. No comparison holds of it, and ReduceMax of ONNX Runtime overlooks it in a row of
  /// nothing else.
  bool overlooks_nan = false;
};

/// What CONDITION asks of rows whose elements lie along the axis KEYS_FROM_LAST of it, which it has one of; nullopt if that is
/// nothing.
std::optional<RowTest> row_test(Value& condition, size_t keys_from_last, Facts& facts);

/// What a condition that asks for the sum or the largest of a row's shares says.
struct SharesTest {
  bool holds_of_shares = false;  ///< that add up to 1, or to less where sinks have the rest
  bool holds_of_nan = false;
};

/// What CONDITION says of SHARES along the axis KEYS_FROM_LAST; nullopt if it asks for anything else, or not all of them alike.
std::optional<SharesTest> shares_test(Value& condition, Value& shares, size_t keys_from_last, Facts& facts);

}  // namespace attn_opt
