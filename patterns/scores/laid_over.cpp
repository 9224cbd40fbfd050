#include "patterns/scores/laid_over.h"

#include <algorithm>
#include <vector>

#include "attn_opt/canonical.h"
#include "patterns/inner_values.h"
#include "src/match/permutation.h"

namespace attn_opt {
namespace {

/// Values looked at for sizes.
constexpr size_t kMaxHolders = 64;

/// SIZE as an axis of VALUE has it; null if none does.
Value* size_in(Value& value, const Dim& size, InnerValues& inner, Facts& facts) {
  const MaybeShape shape = facts.shape(value);
  const auto axis = shape ? std::ranges::find(*shape, size) - shape->begin() : 0;
  return shape && axis < std::ssize(*shape) ? inner.size(value, axis) : nullptr;
}

/// SIZE, of an axis of VALUE, as it is read from an input, so that it is one value wherever it is asked for; else from what
/// lies furthest above VALUE, which need not be made for it then.
Value* size_above(const Dim& size, Value& value, InnerValues& inner, Facts& facts) {
  if (size.is_constant()) return inner.build().ints({size.value()});
  for (Value* input : value.graph->inputs())
    if (Value* found = size_in(*input, size, inner, facts)) return found;
  std::vector<Value*> above{&canonical(value, facts)};
  Value* found = nullptr;
  for (size_t i = 0; i < above.size(); ++i) {
    if (Value* here = size_in(*above[i], size, inner, facts)) found = here;
    if (!above[i]->producer) continue;
    for (Value* input : above[i]->producer->inputs) {
      Value* seen = input ? &canonical(*input, facts) : nullptr;
      if (seen && above.size() < kMaxHolders && std::ranges::find(above, seen) == above.end()) above.push_back(seen);
    }
  }
  return found;
}

/// NUMBER as often as the axes of WHOLE from FIRST on say.
Value* repeated(int64_t number, Value& whole, size_t first, InnerValues& inner, Facts& facts) {
  const Shape shape = facts.shape(whole).known();
  std::vector<Value*> sizes;
  for (size_t axis = first; axis < shape.size(); ++axis) sizes.push_back(size_above(shape[axis], whole, inner, facts));
  Value* one = inner.number(number, onnx::TensorProto::INT64);
  return sizes.empty() ? one : inner.build().node("Expand", {one, inner.concat(sizes, 0)});
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
  if (Value* truths = truths_of(node, facts)) return Literal{truths, false};
  InnerValues inner(reader, context);
  std::vector<Value*> inputs(node.inputs.begin(), node.inputs.end());
  inputs[0] = repeated(is_triangle ? 1 : 0, *node.inputs[0], is_triangle ? shape->size() - 2 : 0, inner, facts);
  if (!is_triangle) inputs[2] = repeated(1, *node.inputs[2], 0, inner, facts);
  const bool is_upper = is_triangle && node.int_attribute("upper", 1) != 0;
  const auto diagonal = !is_triangle ? std::nullopt : node.input(1) ? facts.scalar(*node.inputs[1]) : std::optional(0.0);
  // What an upper triangle leaves is what the lower one below it does not: the two are one condition then.
  if (diagonal)
    inputs = {inputs[0], inner.number(static_cast<int64_t>(*diagonal) - (is_upper ? 1 : 0), onnx::TensorProto::INT64)};
  Value* places = diagonal ? inner.build().node("Trilu", inputs, {GraphBuilder::attribute("upper", int64_t{0})})
                           : inner.again(node, inputs);
  Value* booleans = inner.build().node("Cast", {places}, {GraphBuilder::attribute("to", int64_t{onnx::TensorProto::BOOL})});
  return Literal{booleans, is_triangle && !(diagonal && is_upper)};
}

}  // namespace attn_opt
