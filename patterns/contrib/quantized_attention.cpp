// com.microsoft::QAttention, which projects an input of 8 bits by weights of 8 bits.
//
//   before  X ───────────┐                   after  X, weights, zero points ─ MatMulInteger ─ Cast ─┐
//           weights ─────┤                          scales ─ Mul ───────────────────────────────────┴─ Mul ─┐
//           bias ────────┤                          bias ───────────────────────────────────────────────────┴─ Add ─ Split ─┐
//           scales ──────┼─ QAttention ─ Y                                                                      Q, K, V ───┤
//           zero points ─┤                          mask ─ Greater ─ Where ─────────────────────────────────────────────────┤
//           mask ────────┘                                                                             Attention(24) ─ Y ───┘
//
// The sums of integers stay exact, as they are in the operator. Past and present are those of com.microsoft::Attention.
#include "patterns/contrib/operator.h"
#include "patterns/contrib/projected_reader.h"
#include "patterns/contrib/ranks.h"

namespace attn_opt {
namespace {

constexpr ProjectedInputs kQuantizedInputs{
    .mask = 5, .past = 8, .attention_bias = ProjectedInputs::kNone, .past_length = ProjectedInputs::kNone, .typed = 2};
constexpr size_t kInputScale = 3, kWeightScale = 4, kInputZero = 6, kWeightZero = 7;

constexpr InputRank kQuantizedRanks[] = {{0, "input", 3, true}, {1, "weights", 2, true}, {2, "bias", 1, true}, {8, "past", 5}};

bool is_byte(DataType type) { return type == onnx::TensorProto::INT8 || type == onnx::TensorProto::UINT8; }

class ContribQuantizedAttentionReader : public ProjectedReader {
 public:
  static constexpr std::string_view kName = "contrib_qattention", kOperator = "QAttention";
  static constexpr std::string_view kSummary = "com.microsoft::QAttention, with its projections of integers";

  ContribQuantizedAttentionReader(Node& node, MatchContext& context) : ProjectedReader(node, context, kQuantizedInputs) {}

 private:
  Matched<void> check_operands() const override {
    ATTN_OPT_DONE(check_ranks(node_, kQuantizedRanks, facts_, kBias));
    for (const size_t input : {kX, kWeights}) {
      const DataType type = facts_.type(*node_.inputs[input]);
      if (!is_byte(type)) return missed("contrib.type", &node_, "an operand is of type " + type_name(type) + ", not of 8 bits");
    }
    const Dim one(1), columns = facts_.shape(*node_.inputs[kWeights]).known()[1];
    ATTN_OPT_DONE(check_count(kInputScale, "input_scale", true, one));
    ATTN_OPT_DONE(check_count(kWeightScale, "weight_scale", true, columns));
    ATTN_OPT_DONE(check_count(kInputZero, "input_zero_point", false, one));
    return check_count(kWeightZero, "weight_zero_point", false, columns);
  }

  /// Input number INPUT holds one number, or one for each of COLUMNS.
  Matched<void> check_count(size_t input, std::string_view name, bool is_required, const Dim& columns) const {
    const Value* value = node_.input(input);
    if (!value && !is_required) return {};
    if (!value) return missed("contrib.rank", &node_, "there is no " + std::string(name));
    const MaybeShape shape = facts_.shape(*value);
    if (shape && (shape->empty() || (shape->size() == 1 && ((*shape)[0].is(1) || (*shape)[0] == columns)))) return {};
    return missed("contrib.rank", &node_,
                  shape_said(name, *value, facts_) + ", not one number" + (columns.is(1) ? "" : " or one for each column"));
  }

  Value* project() override {
    GraphBuilder& build = inner_.build();
    Value* sums = build.node("MatMulInteger",
                             {node_.inputs[kX], node_.inputs[kWeights], zero_point(kInputZero), zero_point(kWeightZero)});
    Value* products = build.node("Cast", {sums}, {GraphBuilder::attribute("to", int64_t{facts_.type(*node_.inputs[kBias])})});
    Value* scale = build.node("Mul", {node_.inputs[kInputScale], node_.inputs[kWeightScale]});
    return build.node("Add", {build.node("Mul", {products, scale}), node_.inputs[kBias]});
  }

  /// Of one number as MatMulInteger takes it: without an axis, since an axis is that of rows or columns.
  Value* zero_point(size_t input) {
    Value* value = node_.input(input);
    if (!value) return nullptr;
    const Shape& shape = facts_.shape(*value).known();
    return shape.size() == 1 && shape[0].is(1) ? inner_.reshaped(value, {}) : value;
  }
};

using ContribQuantizedAttention = ContribOperator<ContribQuantizedAttentionReader>;

}  // namespace

ATTN_OPT_REGISTER_PATTERN(ContribQuantizedAttention)

}  // namespace attn_opt
