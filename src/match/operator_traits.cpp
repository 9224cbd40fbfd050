#include "attn_opt/operator_traits.h"

#include <array>

#include "src/match/operator_map.h"

namespace attn_opt {
namespace {

using Traits = uint32_t;

constexpr Traits operator|(Trait one, Trait other) { return static_cast<Traits>(one) | static_cast<Traits>(other); }
constexpr Traits operator|(Traits all, Trait one) { return all | static_cast<Traits>(one); }

using Row = OperatorMap<Traits>::Row;

constexpr auto rows() {
  using enum Trait;
  constexpr Traits regroups = kRegroups | kKeepsAll | kMoves;
  constexpr Traits reorders = kKeepsAll | kMoves;
  constexpr Traits moves = static_cast<Traits>(kMoves);
  constexpr Traits maps = static_cast<Traits>(kElementwise);
  constexpr Traits selects = kElementwise | kSelects;
  constexpr Traits combines = kElementwise | kCommutes;
  constexpr Traits reduces = static_cast<Traits>(kReduces);
  constexpr Traits exponentials = static_cast<Traits>(kExponential);
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
      {"Not", maps},
      {"Equal", combines},
      {"Less", maps},
      {"LessOrEqual", maps},
      {"Greater", maps},
      {"GreaterOrEqual", maps},
      {"BitwiseAnd", combines},
      {"BitwiseOr", combines},
      {"BitwiseXor", combines},
      {"Pow", kElementwise | kExponential},
      {"Sqrt", maps},
      {"Reciprocal", maps},
      {"Abs", maps},
      {"Exp", kElementwise | kExponential},
      {"Log", maps},
      {"Tanh", maps},
      {"Sigmoid", maps},
      {"Relu", maps},
      {"Erf", maps},
      {"Cos", maps},
      {"Sin", maps},
      {"Softsign", maps},
      {"Softplus", maps},
      {"Elu", maps},
      {"Celu", maps},
      {"Selu", maps},
      {"LeakyRelu", maps},
      {"HardSigmoid", maps},
      {"HardSwish", maps},
      {"ThresholdedRelu", maps},
      {"Gelu", maps},
      {"Mish", maps},
      {"Swish", maps},
      {"Tan", maps},
      {"Sinh", maps},
      {"Cosh", maps},
      {"Asin", maps},
      {"Acos", maps},
      {"Atan", maps},
      {"Asinh", maps},
      {"Acosh", maps},
      {"Atanh", maps},
      {"Ceil", maps},
      {"Floor", maps},
      {"Round", maps},
      {"Sign", maps},
      {"ReduceL1", reduces},
      {"ReduceL2", reduces},
      {"ReduceLogSum", reduces},
      {"ReduceLogSumExp", kReduces | kExponential},
      {"ReduceMax", reduces},
      {"ReduceMean", reduces},
      {"ReduceMin", reduces},
      {"ReduceProd", reduces},
      {"ReduceSum", reduces},
      {"ReduceSumSquare", reduces},
      {"Softmax", exponentials},
      {"LogSoftmax", exponentials},
  });
}

constexpr OperatorMap<Traits> kTraits(rows());

bool is_among(const Traits* traits, Trait trait) { return traits && (*traits & static_cast<Traits>(trait)) != 0; }

}  // namespace

bool operator_has(std::string_view op_type, Trait trait) { return is_among(kTraits.find(op_type), trait); }

bool has(const Node& node, Trait trait) { return is_among(kTraits.find(node), trait); }

double times_added(const Node& node, size_t input) {
  if (node.is("Mean")) return 1 / static_cast<double>(node.inputs.size());
  return node.is("Neg") || (node.is("Sub") && input == 1) ? -1 : 1;
}

}  // namespace attn_opt
