// Axes cut into factors, each with a letter of its own, so that an Einsum may move them apart.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "patterns/inner_values.h"

namespace attn_opt {

/// What a Reshape makes of a value, and a letter for each axis.
struct LetteredShape {
  std::vector<Dim> sizes;
  std::vector<std::optional<int64_t>> axes;  ///< of what is reshaped, where one has this size
  std::string term;

  void add(const Dim& size, char letter, std::optional<int64_t> axis);
};

/// VALUE in SHAPE; itself where it has that. Null if more than one size stands nowhere.
Value* reshaped(Value& value, const LetteredShape& shape, InnerValues& inner, Facts& facts);

}  // namespace attn_opt
