#include "attn_opt/operator_traits.h"

#include <algorithm>

#include "tests/exec/models.h"

namespace attn_opt::testing {
namespace {

const Tensor kFloats = Tensor::of<float>({3}, {1.5, -2, 3}), kOthers = Tensor::of<float>({3}, {2, 0.5, 3});
const Tensor kIntegers = Tensor::of<int32_t>({3}, {1, 6, 3}), kOtherIntegers = Tensor::of<int32_t>({3}, {2, 5, 3});

Tensor bools(const std::vector<float>& values) { return *Tensor::of<float>({4}, values).cast(onnx::TensorProto::BOOL); }

std::vector<double> numbers(const Tensor& tensor) { return values<double>(*tensor.cast(onnx::TensorProto::DOUBLE)); }

struct Binary {
  std::string op_type;
  Tensor one, other;
};

std::vector<Binary> binaries() {
  std::vector<Binary> all;
  for (const char* op_type : {"Add", "Sub", "Mul", "Div", "Min", "Max", "Sum", "Mean", "Pow", "Equal", "Less", "Greater"})
    all.push_back({op_type, kFloats, kOthers});
  for (const char* op_type : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"}) all.push_back({op_type, kIntegers, kOtherIntegers});
  for (const char* op_type : {"And", "Or", "Xor"}) all.push_back({op_type, bools({1, 1, 0, 0}), bools({1, 0, 1, 0})});
  return all;
}

/// What the operator makes of ONE and, if there is one, OTHER.
Tensor made_by(const std::string& op_type, const Tensor& one, const Tensor& other, const std::string& attributes = "") {
  std::vector<Tensor> inputs{one, other};
  if (!other.has_value()) inputs.pop_back();
  const auto result = run_text("y = " + op_type + attributes + (other.has_value() ? "(a, b)" : "(a)"), inputs);
  EXPECT_TRUE(result) << op_type << ": " << result.error().message();
  return result ? (*result)[0] : Tensor();
}

TEST(OperatorTraits, OperatorsCommuteWhoseResultIsTheSameEitherWay) {
  for (const auto& [op_type, one, other] : binaries())
    EXPECT_EQ(operator_has(op_type, Trait::kCommutes),
              numbers(made_by(op_type, one, other)) == numbers(made_by(op_type, other, one)))
        << op_type;
}

TEST(OperatorTraits, SumsGrowByAMultipleOfWhatAnOperandGrowsBy) {
  const Tensor twice = Tensor::of<float>({3}, {3, -4, 6}), thrice = Tensor::of<float>({3}, {4.5, -6, 9});
  for (const auto& [op_type, one, other] : binaries()) {
    if (one.type() != onnx::TensorProto::FLOAT || op_type == "Equal" || op_type == "Less" || op_type == "Greater") continue;
    const Tensor first = made_by("Sub", made_by(op_type, twice, other), made_by(op_type, one, other));
    const Tensor second = made_by("Sub", made_by(op_type, thrice, other), made_by(op_type, twice, other));
    const bool is_linear = numbers(first) == numbers(second) && !operator_has(op_type, Trait::kMultiplies) &&
                           !operator_has(op_type, Trait::kSelects);
    EXPECT_EQ(operator_has(op_type, Trait::kAdds), is_linear) << op_type;
  }
}

struct Layout {
  std::string op_type, attributes;
  std::vector<int64_t> operand;
};

TEST(OperatorTraits, ElementsAreKeptMovedAndRegroupedAsTheExecutorDoes) {
  const Tensor data = Tensor::of<float>({2, 3}, {6, 1, 2, 3, 4, 5});
  const std::vector<float> elements = values<float>(data);
  const std::vector<Layout> all{{"Identity", "", {}},   {"Reshape", "", {3, 2}},
                                {"Unsqueeze", "", {0}}, {"Flatten", "<axis = 1>", {}},
                                {"Transpose", "", {}},  {"Expand", "", {2, 2, 3}},
                                {"Tile", "", {1, 2}},   {"Gather", "", {1, 1}},
                                {"Trilu", "", {}},      {"Neg", "", {}}};
  for (const auto& [op_type, attributes, operand] : all) {
    const Tensor second = operand.empty() ? Tensor() : Tensor::of<int64_t>({static_cast<int64_t>(operand.size())}, operand);
    const std::vector<float> made = values<float>(made_by(op_type, data, second, attributes));
    const bool moves =
        std::ranges::all_of(made, [&](float element) { return std::ranges::find(elements, element) != elements.end(); });
    EXPECT_EQ(operator_has(op_type, Trait::kRegroups), made == elements) << op_type;
    EXPECT_EQ(operator_has(op_type, Trait::kKeepsAll), std::ranges::is_permutation(made, elements)) << op_type;
    EXPECT_EQ(operator_has(op_type, Trait::kMoves), moves) << op_type;
  }
}

TEST(OperatorTraits, ReductionsLeaveOneElementOfAll) {
  const Tensor data = Tensor::of<float>({2, 3}, {6, 1, 2, 3, 4, 5});
  for (const std::string op_type :
       {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
        "ReduceSum", "ReduceSumSquare", "Exp", "Identity", "Softmax", "Transpose"})
    EXPECT_EQ(operator_has(op_type, Trait::kReduces), numbers(made_by(op_type, data, Tensor())).size() == 1) << op_type;
}

}  // namespace
}  // namespace attn_opt::testing
