#include "attn_opt/operator_traits.h"

#include <algorithm>
#include <array>

namespace attn_opt {
namespace {

using Traits = uint32_t;

constexpr Traits operator|(Trait one, Trait other) { return static_cast<Traits>(one) | static_cast<Traits>(other); }
constexpr Traits operator|(Traits all, Trait one) { return all | static_cast<Traits>(one); }

struct Row {
  std::string_view op_type;
  Traits traits;
};

constexpr auto rows() {
  using enum Trait;
  constexpr Traits regroups = kRegroups | kKeepsAll | kMoves;
  constexpr Traits reorders = kKeepsAll | kMoves;
  constexpr Traits moves = static_cast<Traits>(kMoves);
  constexpr Traits maps = static_cast<Traits>(kElementwise);
  constexpr Traits selects = kElementwise | kSelects;
  constexpr Traits combines = kElementwise | kCommutes;
  return std::to_array<Row>({
      {"Identity", regroups},
      {"Reshape", regroups},
      {"Squeeze", regroups},
      {"Unsqueeze", regroups},
      {"Flatten", regroups},
      {"Transpose", reorders},
      {"Expand", moves},
      {"Tile", moves},
      {"Slice", moves},
      {"Gather", moves},
      {"GatherND", moves},
      {"GatherElements", moves},
      {"Cast", maps},
      {"Where", selects},
      {"Min", selects | kCommutes},
      {"Max", selects | kCommutes},
      {"Add", combines | kAdds},
      {"Sum", combines | kAdds},
      {"Mean", combines | kAdds},
      {"Sub", kElementwise | kAdds},
      {"Neg", kElementwise | kAdds},
      {"Mul", combines | kMultiplies},
      {"Div", kElementwise | kMultiplies},
      {"And", combines},
      {"Or", combines},
      {"Xor", combines},
      {"Equal", combines},
      {"BitwiseAnd", combines},
      {"BitwiseOr", combines},
      {"BitwiseXor", combines},
      {"Pow", maps},
      {"Sqrt", maps},
      {"Reciprocal", maps},
      {"Abs", maps},
      {"Exp", maps},
      {"Log", maps},
      {"Tanh", maps},
      {"Sigmoid", maps},
      {"Relu", maps},
      {"Erf", maps},
      {"Cos", maps},
      {"Sin", maps},
  });
}

/// The rows by the length of their names, which tells most operators apart: it is asked of every node, many times.
constexpr auto kByLength = [] {
  auto by_length = rows();
  std::ranges::sort(by_length, {}, [](const Row& row) { return row.op_type.size(); });
  return by_length;
}();

constexpr size_t kLongest = kByLength.back().op_type.size();

/// Where the names of a length begin in kByLength.
constexpr auto kBegin = [] {
  std::array<size_t, kLongest + 2> begin{};
  for (size_t length = 0; length < begin.size(); ++length)
    begin[length] = static_cast<size_t>(std::ranges::count_if(kByLength, [&](const Row& row) { return row.op_type.size() < length; }));
  return begin;
}();

}  // namespace

bool operator_has(std::string_view op_type, Trait trait) {
  const size_t length = op_type.size();
  if (length == 0 || length > kLongest) return false;
  for (size_t at = kBegin[length]; at < kBegin[length + 1]; ++at) {
    const Row& row = kByLength[at];
    if (row.op_type.back() == op_type.back() && row.op_type == op_type) return (row.traits & static_cast<Traits>(trait)) != 0;
  }
  return false;
}

}  // namespace attn_opt
