// Follows values of a graph as functions of where their elements stand, and of lengths: lists of integers that are not
// known.
#pragma once

#include <unordered_map>
#include <variant>

#include "attn_opt/facts.h"
#include "attn_opt/graph.h"
#include "src/match/positions/position_table.h"

namespace attn_opt {

/// What an element is. Integers are a form, which may be of a floating type; everything else is a table.
using Reading = std::variant<IndexForm, PositionTable>;

/// Calls VISIT for each form in READING.
template <class ReadingType, class Visit>
void for_each_form(ReadingType& reading, Visit visit) {
  if (auto* form = std::get_if<IndexForm>(&reading)) return visit(*form);
  for (auto& condition : std::get<PositionTable>(reading).conditions) visit(condition);
}

class PositionReader {
 public:
  explicit PositionReader(Facts& facts) : facts_(facts) {}

  /// VALUE's elements; nullopt where they hang on more than their places, or by more than is followed.
  std::optional<PositionTable> read(Value& value) { return table(&value); }
  /// VALUE's elements, as integers that are one form of their places.
  std::optional<IndexForm> read_form(Value& value) { return form(&value); }
  /// The first value that could not be followed; null if there was none.
  const Value* obstacle() const { return obstacle_; }

 private:
  using Found = std::optional<Reading>;

  Found follow(Value* value);
  Found known(Value& value);
  Found known_integer(Value& value);
  /// VALUE as a list of lengths, if it is a list of integers.
  Found list_of_lengths(Value& value);
  Found computed(Node& node);
  // position_arithmetic.cpp
  Found range(Node& node);
  Found running_sum(Node& node);
  Found all_places(Node& node);
  Found part_of_flat_index(Node& node);
  Found cast(Node& node);
  Found triangle(Node& node);
  Found pointwise(Node& node);
  Found arithmetic(Node& node);
  Found comparison(Node& node);
  Found distance(Node& node);
  Found elementwise(Node& node);
  // position_layout.cpp
  Found regrouped(Node& node);
  Found transposed(Node& node);
  Found slice(Node& node);
  Found gather(Node& node);

  std::optional<IndexForm> form(Value* value);
  std::optional<PositionTable> table(Value* value);
  /// INPUT of NODE, if its elements stand where NODE's result has them, but for axes of one element.
  Found aligned_input(Node& node, size_t input);

  Facts& facts_;
  std::unordered_map<const Value*, Found> known_;
  const Value* obstacle_ = nullptr;
};

}  // namespace attn_opt
