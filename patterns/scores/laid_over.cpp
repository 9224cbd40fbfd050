#include "patterns/scores/laid_over.h"

#include <algorithm>
#include <vector>

#include "attn_opt/canonical.h"
#include "patterns/inner_values.h"
#include "src/match/permutation.h"

namespace attn_opt {
namespace {

/// NUMBER as often as the axes of WHOLE from FIRST on say; null where that is not known.
Value* repeated(int64_t number, Value& whole, size_t first, InnerValues& inner, Facts& facts) {
  const Shape shape = facts.shape(whole).known();
  const Shape sizes(shape.begin() + static_cast<std::ptrdiff_t>(first), shape.end());
  Value* one = inner.number(number, onnx::TensorProto::INT64);
  return sizes.empty() ? one : inner.shaped("Expand", one, sizes, whole);
}

/// The booleans where SCATTER lays one update over each that is true, before they are expanded to what it lays them over; null
/// if its indices are no NonZero of such.
Value* truths_of(const Node& scatter, Facts& facts) {
  if (!scatter.is("ScatterND")) return nullptr;
  const Node* turned = canonical(*scatter.inputs[1], facts).producer;
  const bool is_turned = turned && turned->is("Transpose") && permutation(*turned, facts) == std::vector<int64_t>{1, 0};
  const Node* places = is_turned ? canonical(*turned->inputs[0], facts).producer : nullptr;
  if (!places || !places->is("NonZero")) return nullptr;
  Value& truths = canonical(*places->inputs[0], facts);
  const MaybeShape own = facts.shape(truths), whole = facts.shape(*scatter.inputs[0]);
  if (facts.type(truths) != onnx::TensorProto::BOOL || !own || !whole || *own != *whole) return nullptr;
  return truths.producer && truths.producer->is("Expand") ? truths.producer->inputs[0] : &truths;
}

}  // namespace

bool lays_over(const Node& node) {
  if (node.is("Trilu")) return node.input(0);
  const bool scatters = node.is("ScatterND") || node.is("ScatterElements");
  return scatters && node.input(0) && node.input(1) && node.input(2) && node.string_attribute("reduction", "none") == "none";
}

std::optional<Literal> left_by(const Node& node, Node& reader, MatchContext& context) {
  Facts& facts = context.facts;
  const MaybeShape shape = facts.shape(*node.inputs[0]);
  const bool is_triangle = node.is("Trilu");
  if (!shape || shape->size() < 2 || (!is_triangle && !facts.shape(*node.inputs[2]))) return std::nullopt;
  if (Value* truths = truths_of(node, facts)) return literal_of({truths, false}, facts);
  InnerValues inner(reader, context);
  std::vector<Value*> inputs(node.inputs.begin(), node.inputs.end());
  inputs[0] = repeated(is_triangle ? 1 : 0, *node.inputs[0], is_triangle ? shape->size() - 2 : 0, inner, facts);
  if (!is_triangle) inputs[2] = repeated(1, *node.inputs[2], 0, inner, facts);
  if (!inputs[0] || (!is_triangle && !inputs[2])) return std::nullopt;
  const bool is_upper = is_triangle && node.int_attribute("upper", 1) != 0;
  const auto diagonal = !is_triangle ? std::nullopt : node.input(1) ? facts.scalar(*node.inputs[1]) : std::optional(0.0);
  // What an upper triangle leaves is what the lower one below it does not: the two are one condition then.
  if (diagonal)
    inputs = {inputs[0], inner.number(static_cast<int64_t>(*diagonal) - (is_upper ? 1 : 0), onnx::TensorProto::INT64)};
  Value* places = diagonal ? inner.build().node("Trilu", inputs, {GraphBuilder::attribute("upper", int64_t{0})})
                           : inner.again(node, inputs);
  Value* booleans = inner.build().node("Cast", {places}, {GraphBuilder::attribute("to", int64_t{onnx::TensorProto::BOOL})});
  return literal_of({booleans, is_triangle && !(diagonal && is_upper)}, facts);
}

}  // namespace attn_opt
